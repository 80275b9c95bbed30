//! Classes, twins, doubts: on kernels that differ in one number.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// `out[tid] = number`, in a text that may be spoilt.
struct Stores {
    group: u32,
    number: u32,
    scalar: Option<u64>,
    text: fn(String) -> io::Result<String>,
    launches: AtomicUsize,
}

impl Kernel for Stores {
    type Facts = Option<u64>;

    fn group(&self) -> u32 {
        self.group
    }

    fn text(&self) -> io::Result<Cow<'_, str>> {
        let text = format!(
            ".version 8.7
            .target sm_90
            .address_size 64
            .visible .entry stores(.param .u64 .ptr .global .align 16 out, .param .u32 n)
            .reqntid 32
            {{
                .reg .b32 %r<3>;
                .reg .b64 %rd<4>;
                ld.param.b64 %rd1, [out];
                mov.u32 %r1, %tid.x;
                mul.wide.u32 %rd2, %r1, 4;
                add.s64 %rd3, %rd1, %rd2;
                mov.b32 %r2, {};
                st.global.b32 [%rd3], %r2;
                ret;
            }}",
            self.number
        );
        (self.text)(text).map(Cow::Owned)
    }

    fn entry(&self) -> Option<&str> {
        None
    }

    fn facts(&self) -> &Option<u64> {
        &self.scalar
    }

    fn launch(&self, _: &Module) -> Result<Launch, String> {
        self.launches.fetch_add(1, Ordering::Relaxed);
        if self.scalar == Some(13) {
            return Err("thirteen".into());
        }
        let scalars = self.scalar.map(|bits| (1, bits)).into_iter().collect();
        Ok(Launch { scalars, ..Launch::default() })
    }
}

fn stores(group: u32, number: u32) -> Stores {
    Stores { group, number, scalar: None, text: Ok, launches: AtomicUsize::new(0) }
}

fn members(partition: &Partition) -> Vec<&[usize]> {
    partition.classes.iter().map(|class| class.members.as_slice()).collect()
}

#[test]
fn classes_and_members_are_in_the_order_given() {
    let kernels: Vec<Stores> = [5, 3, 5, 4, 3].map(|number| stores(0, number)).into();
    let found = partition(&kernels, Assurance::Digest, &());
    assert_eq!(members(&found), [&[0, 2][..], &[1, 4], &[3]]);
    assert!(found.errors.is_empty() && found.classes.iter().all(|class| class.obstacle.is_none()));
}

#[test]
fn groups_are_kept_apart() {
    let kernels = [stores(0, 1), stores(7, 1), stores(0, 1), stores(7, 2)];
    let found = partition(&kernels, Assurance::Exact, &());
    assert_eq!(members(&found), [&[0, 2][..], &[1], &[3]]);
    let groups: Vec<u32> = found.classes.iter().map(|class| class.group).collect();
    assert_eq!(groups, [0, 7, 7]);
    assert_eq!(found.classes[0].digest, found.classes[1].digest);
}

#[test]
fn one_text_with_one_launch_is_walked_once() {
    let mut kernels: Vec<Stores> = (0..24).map(|number| stores(number % 2, number % 3)).collect();
    for kernel in &mut kernels[12..] {
        kernel.scalar = Some(1);
    }
    let found = partition(&kernels, Assurance::Digest, &());
    let walks: usize = kernels.iter().map(|k| k.launches.load(Ordering::Relaxed)).sum();
    assert_eq!(walks, 6, "three texts, with two launches each");
    assert_eq!(found.classes.iter().map(|class| class.members.len()).sum::<usize>(), 24);
}

/// A parameter more, and all behind it have another number.
#[test]
fn other_parameters_are_another_class() {
    let mut kernels = [1, 1, 1].map(|number| stores(0, number));
    kernels[1].text = |text| Ok(text.replace(".param .u32 n", ".param .u32 n, .param .u32 m"));
    kernels[2].text = |text| Ok(text.replace(".u32 n", ".b32 count").replace("16 out", "1 out"));
    let found = partition(&kernels, Assurance::Digest, &());
    assert_eq!(members(&found), [&[0, 2][..], &[1]]);
}

/// Nobody knows what they do with it.
#[test]
fn what_is_not_followed_has_one_launch() {
    let stuck = |text: String| Ok(text.replace("ret;", "tcgen05.wait::ld.sync.aligned; ret;"));
    let mut kernels = [None, Some(1), None, None].map(|scalar| Stores { scalar, ..stores(0, 1) });
    for kernel in &mut kernels {
        kernel.text = stuck;
    }
    kernels[3].text = |text| {
        Ok(text
            .replace("ret;", "tcgen05.wait::ld.sync.aligned; ret;")
            .replace("reqntid 32", "reqntid 64"))
    };
    let found = partition(&kernels, Assurance::Digest, &());
    assert_eq!(members(&found), [&[0, 2][..], &[1], &[3]]);
    assert!(found.classes.iter().all(|class| class.obstacle.is_some()));
}

#[test]
fn the_number_of_threads_does_not_enter() {
    let kernels: Vec<Stores> = (0..200)
        .map(|number| Stores {
            scalar: (number % 5 == 0).then_some(u64::from(number % 3)),
            text: if number % 17 == 0 { |_| Ok(".version".into()) } else { Ok },
            ..stores(number % 4, number * number % 11)
        })
        .collect();
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let found = pool.install(|| partition(&kernels, Assurance::Exact, &()));
        let members: Vec<Vec<usize>> =
            found.classes.into_iter().map(|class| class.members).collect();
        let errors: Vec<usize> = found.errors.into_iter().map(|(number, _)| number).collect();
        (members, errors)
    };
    let one = on(1);
    assert_eq!(one.1.len(), 12);
    for threads in [2, 3, 8, 32] {
        assert_eq!(on(threads), one, "{threads} threads");
    }
}

#[test]
fn a_kernel_without_an_answer_is_an_error_of_its_own() {
    let mut kernels: Vec<Stores> = (0..6).map(|_| stores(0, 1)).collect();
    kernels[1].text = |_| Err(io::ErrorKind::NotFound.into());
    kernels[2].text = |text| Ok(text[..text.len() / 2].into());
    kernels[3].scalar = Some(13);
    kernels[4].text = |text| Ok(text.replace(".entry", ".func"));
    let found = partition(&kernels, Assurance::Exact, &());
    assert_eq!(members(&found), [[0, 5]]);
    let said: Vec<(usize, String)> =
        found.errors.iter().map(|(number, fault)| (*number, fault.to_string())).collect();
    assert_eq!(said.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(said[0].1.contains("not found") && said[1].1.starts_with("PTX line "), "{said:?}");
    assert_eq!(said[2].1, "thirteen");
}

/// Equal digests of different kernels are not to be had, so the exact comparison is lied about.
#[test]
fn a_collision_does_not_certify() {
    let kernels: Vec<Stores> = [1, 1, 2, 1, 1, 1]
        .into_iter()
        .zip([None, Some(1), None, Some(2), Some(1), None])
        .map(|(number, scalar)| Stores { scalar, ..stores(0, number) })
        .collect();
    let all = partition(&kernels, Assurance::Digest, &());
    assert_eq!(members(&all), [&[0, 1, 3, 4, 5][..], &[2]]);
    let found = partition_by(&kernels, Assurance::Exact, &(), |a, b| {
        assert_eq!(a.scalar, None, "against the first of the class");
        Ok(if b.scalar == Some(1) { Comparison::Different(Vec::new()) } else { Comparison::Same })
    });
    // Who is not confirmed leaves with its twin.
    assert_eq!(members(&found), [&[0, 3, 5][..], &[1, 4], &[2]]);
    assert_eq!(found.classes[0].digest, found.classes[1].digest);
    let doubts: Vec<_> =
        found.unconfirmed.iter().map(|found| (found.kernel, found.against)).collect();
    assert_eq!(doubts, [(1, 0)]);
    let found = partition_by(&kernels, Assurance::Exact, &(), |_, b| match b.scalar {
        Some(1) => Err(Fault::Read(io::ErrorKind::NotFound.into())),
        _ => Ok(Comparison::Same),
    });
    assert_eq!(members(&found), [&[0, 3, 5][..], &[1, 4], &[2]]);
    assert!(matches!(found.unconfirmed[0].doubt, Doubt::Fault(_)));
}

#[test]
fn work_is_told_step_by_step() {
    #[derive(Default)]
    struct Counts(AtomicUsize, AtomicUsize);
    impl Watch for Counts {
        fn begin(&self, _: Work, steps: usize) {
            self.0.fetch_add(steps, Ordering::Relaxed);
        }
        fn step(&self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let counts = Counts::default();
    let kernels = [stores(0, 1), stores(0, 1), Stores { scalar: Some(1), ..stores(0, 1) }];
    partition(&kernels, Assurance::Exact, &counts);
    assert_eq!(counts.0.into_inner(), 4, "three kernels, and one pair to confirm");
    assert_eq!(counts.1.into_inner(), 4);
}
