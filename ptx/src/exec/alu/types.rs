//! From values known at decoding to constants: one body, compiled for each.
//!
//! # Idea
//! `num` is written so that matches on types and operations fold when those are constants. These
//! macros make them constants: the body is compiled once for each listed value and the right copy
//! is picked when an instruction is decoded. What is not listed is `None`: refused.

/// `Some` of the body, with `$TY` the constant type suffix and `$T` Rust's type for a row of it.
macro_rules! by_type {
    ($ty:expr; $($($scalar:ident)|+ => $rust:ty),+; $TY:ident: $T:ident => $body:expr) => {{
        use $crate::ir::Scalar;
        let ty: Scalar = $ty;
        $($(if matches!(ty, Scalar::$scalar) {
            #[allow(dead_code, reason = "a body may need the row's type alone")]
            const $TY: Scalar = Scalar::$scalar;
            type $T = $rust;
            Some($body)
        } else)+)+ {
            None
        }
    }};
}

/// [`by_type`] for signed and unsigned integers of 16, 32 and 64 bits.
macro_rules! integers {
    ($ty:expr, $TY:ident: $T:ident => $body:expr) => {
        $crate::exec::alu::types::by_type!($ty;
            U16 | S16 => u16, U32 | S32 => u32, U64 | S64 => u64; $TY: $T => $body)
    };
}

/// [`by_type`] for untyped bits of 16, 32 and 64.
macro_rules! bits {
    ($ty:expr, $TY:ident: $T:ident => $body:expr) => {
        $crate::exec::alu::types::by_type!($ty; B16 => u16, B32 => u32, B64 => u64; $TY: $T => $body)
    };
}

/// The body for a value of an enum, with `$C` that value as a constant; `None` if it is not listed.
macro_rules! by_value {
    ($value:expr; $enum:ident { $($name:ident $(($part:path))?),+ }; $C:ident => $body:expr) => {{
        let value: $enum = $value;
        $(if value == $enum::$name $(($part))? {
            const $C: $enum = $enum::$name $(($part))?;
            $body
        } else)+ {
            None
        }
    }};
}

pub(super) use {bits, by_type, by_value, integers};
