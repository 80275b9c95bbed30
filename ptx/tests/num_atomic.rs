//! The floating-point half of `num::atomic`.

use bitstable_ptx::ir::{Atomic, Scalar, Space};
use bitstable_ptx::num::atomic::{apply, supported};
use rustc_apfloat::Float as Ap;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};

#[path = "num_oracle/mod.rs"]
mod num_oracle;
use num_oracle::Rng;

fn add(ty: Scalar, space: Space, old: u64, operand: u64) -> u64 {
    assert!(supported(Atomic::Add, ty));
    apply(Atomic::Add, ty, space, old, operand, 0)
}

fn adds<A: Ap>(ty: Scalar, exponent: u32, fraction: u32) {
    let mut rng = Rng::new(1);
    for _ in 0..20_000 {
        let [a, b] = [(); 2].map(|()| rng.pattern(exponent, fraction));
        let want = (A::from_bits(a.into()) + A::from_bits(b.into())).value;
        if !want.is_nan() {
            let got = add(ty, Space::Shared, a, b);
            assert_eq!(u128::from(got), want.to_bits(), "{ty} {a:x} {b:x}");
        }
    }
}

#[test]
fn sums_round_to_nearest() {
    adds::<Half>(Scalar::F16, 5, 10);
    adds::<BFloat>(Scalar::BF16, 8, 7);
    adds::<Single>(Scalar::F32, 8, 23);
    adds::<Double>(Scalar::F64, 11, 52);
}

#[test]
fn global_f32_sums_flush() {
    for space in [Space::Global, Space::Generic] {
        assert_eq!(add(Scalar::F32, space, 0x8000_0001, 0x8000_0001), 0x8000_0000);
        assert_eq!(add(Scalar::F32, space, 0x0080_0001, 0x8080_0000), 0);
    }
    for space in [Space::Shared, Space::SharedCluster] {
        assert_eq!(add(Scalar::F32, space, 0x8000_0001, 0x8000_0001), 0x8000_0002);
        assert_eq!(add(Scalar::F32, space, 0x0080_0001, 0x8080_0000), 1);
    }
    assert_eq!(add(Scalar::F64, Space::Global, 1, 1), 2);
}

#[test]
fn packed_halves_update_apart_and_keep_subnormals() {
    let sum = add(Scalar::F16x2, Space::Global, 0x0001_7bff, 0x0001_7bff);
    assert_eq!(sum, 0x0002_7c00);
    let sum = add(Scalar::BF16x2, Space::Global, 0x0001_3f80, 0x0001_bf80);
    assert_eq!(sum, 0x0002_0000);
    let least = apply(Atomic::Min, Scalar::F16x2, Space::Global, 0x7e00_0000, 0x3c00_8000, 0);
    assert_eq!(least, 0x3c00_8000);
}
