//! What is known of a launch, before the kernel's parameters are.
//!
//! # Invariants
//! - **F1** A fact that a kernel cannot have (a parameter that is not there, a number outside its type,
//!   another block than `.reqntid`) is an error of that kernel, never ignored.

use std::str::FromStr;

use bitstable_equiv::{Launch, partition::entry};
use bitstable_ptx::ir::{Function, Module, Variable};

use crate::{
    element::ElementType,
    launch::{accepts_float, of_type},
    streams::counted,
};

/// Facts as they were given.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Facts {
    pub grid: Option<[u32; 3]>,
    pub block: Option<[u32; 3]>,
    pub scalars: Vec<Known>,
}

/// The value of a scalar parameter: `3=1024`, `scale_param_3=f32:0.5`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Known {
    pub parameter: Parameter,
    /// Read when the parameter's type is known.
    pub value: String,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Parameter {
    Number(usize),
    Name(String),
}

impl FromStr for Known {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((parameter, value)) if !parameter.is_empty() && !value.is_empty() => {
                Ok(Self::new(parameter, value))
            }
            _ => Err("a parameter and its value are wanted: 3=1024, 4=f32:1e-5".into()),
        }
    }
}

impl Known {
    /// A parameter that is written as a number is meant by its number.
    pub fn new(parameter: &str, value: &str) -> Self {
        let parameter = match parameter.parse() {
            Ok(number) => Parameter::Number(number),
            Err(_) => Parameter::Name(parameter.into()),
        };
        Self { parameter, value: value.into() }
    }
}

impl Facts {
    /// In the terms of a module's kernel. Where there is no such kernel, the walk says so.
    pub fn launch(&self, module: &Module, name: Option<&str>) -> Result<Launch, String> {
        for (what, extent) in [("grid", self.grid), ("block", self.block)] {
            if extent.is_some_and(|extent| extent.contains(&0)) {
                return Err(format!("a {what} has a size of 0"));
            }
        }
        let mut launch = Launch { grid: self.grid, block: self.block, scalars: Default::default() };
        let Some(kernel) = entry(module, name) else { return Ok(launch) };
        self.check_block(kernel)?;
        for known in &self.scalars {
            let (number, bits) = known.bind(&kernel.params)?;
            if launch.scalars.insert(number as u32, bits).is_some() {
                return Err(format!("parameter {number} has more than one value"));
            }
        }
        Ok(launch)
    }

    fn check_block(&self, kernel: &Function) -> Result<(), String> {
        let (Some(given), Some(own)) = (self.block, kernel.directive("reqntid")) else {
            return Ok(());
        };
        let wanted: Vec<u32> = (0..3).map(|axis| own.get(axis).copied().unwrap_or(1)).collect();
        if wanted == given {
            return Ok(());
        }
        let [given, own] = [&given[..], own].map(sizes);
        Err(format!("a block of {given} is not the kernel's own, .reqntid {own}: leave it out"))
    }
}

fn sizes(sizes: &[u32]) -> String {
    sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

impl Known {
    /// The parameter's number, and the bits of its value.
    fn bind(&self, params: &[Variable]) -> Result<(usize, u64), String> {
        let number = match &self.parameter {
            Parameter::Number(number) if *number < params.len() => *number,
            Parameter::Number(number) => {
                let all = counted(params.len(), "parameter");
                return Err(format!(
                    "there is no parameter {number}: the kernel has {all}, from 0"
                ));
            }
            Parameter::Name(name) => {
                params.iter().position(|param| param.name == *name).ok_or_else(|| {
                    let all: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
                    let all = if all.is_empty() { "none".into() } else { all.join(", ") };
                    format!("there is no parameter named `{name}`; there are: {all}")
                })?
            }
        };
        let param = &params[number];
        let bits = value(param, &self.value).map_err(|why| format!("parameter {number}: {why}"))?;
        Ok((number, bits))
    }
}

fn value(param: &Variable, text: &str) -> Result<u64, String> {
    if param.pointer.is_some() {
        return Err("it is a pointer, and no fact about it is used".into());
    }
    if param.elements.is_some() || param.vector != 1 {
        return Err("it is an array, not a number".into());
    }
    let (ty, bytes) = (param.ty, param.ty.bytes());
    let Some((given, number)) = text.split_once(':') else { return of_type(ty, bytes, text) };
    let given: ElementType = given.parse().map_err(|_| format!("`{given}` is no type"))?;
    if given.bytes() != bytes as usize || given.is_float() != accepts_float(ty, given) {
        return Err(format!("it is a .{ty}, not {given}"));
    }
    given.read(number)
}

#[cfg(test)]
mod tests {
    use bitstable_ptx::syntax::parse;

    use super::*;

    const KERNEL: &str = "
        .version 8.7
        .target sm_90
        .address_size 64
        .visible .entry k(
            .param .u64 .ptr .global .align 1 k_param_0, .param .u32 k_param_1,
            .param .f32 k_param_2, .param .b32 k_param_3, .param .u64 k_param_4,
            .param .align 64 .b8 k_param_5[128]
        )
        .reqntid 128
        {
            ret;
        }";

    fn launch(scalars: &[&str]) -> Result<Launch, String> {
        let scalars = scalars.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        let module = parse(KERNEL).expect("it is PTX");
        Facts { scalars, ..Facts::default() }.launch(&module, None)
    }

    #[test]
    fn values_are_read_by_the_parameters_types() {
        let given = ["1=-1", "k_param_2=1e-5", "3=f32:0.5", "4=0xffffffffffffffff"];
        let known = launch(&given).expect("they fit").scalars;
        let all: Vec<(u32, u64)> = known.into_iter().collect();
        let tiny = u64::from(1e-5f32.to_bits());
        assert_eq!(all, [(1, 0xffff_ffff), (2, tiny), (3, 0x3f00_0000), (4, u64::MAX)]);
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (given, said) in [
            ("0=4096", "parameter 0: it is a pointer"),
            ("5=1", "parameter 5: it is an array"),
            ("6=1", "no parameter 6: the kernel has 6 parameters, from 0"),
            ("n=1", "no parameter named `n`; there are: k_param_0, k_param_1"),
            ("1=4294967296", "parameter 1: 4294967296 is outside u32"),
            ("1=f32:1", "parameter 1: it is a .u32, not f32"),
            ("2=i32:1", "parameter 2: it is a .f32, not i32"),
            ("2=f64:1", "parameter 2: it is a .f32, not f64"),
            ("2=f31:1", "`f31` is no type"),
            ("1=ten", "`ten` is no u32"),
            ("1", "3=1024"),
            ("=1", "3=1024"),
        ] {
            let why = launch(&[given]).expect_err(given);
            assert!(why.contains(said), "{given}: {why}");
        }
        let why = launch(&["1=1", "k_param_1=1"]).expect_err("twice");
        assert_eq!(why, "parameter 1 has more than one value");
    }

    #[test]
    fn a_block_must_be_the_kernels_own() {
        let module = parse(KERNEL).expect("it is PTX");
        let of = |block| Facts { block, ..Facts::default() }.launch(&module, Some("k"));
        assert!(of(Some([128, 1, 1])).is_ok() && of(None).is_ok());
        let why = of(Some([64, 1, 1])).expect_err("another");
        assert!(why.contains("64,1,1 is not the kernel's own, .reqntid 128"), "{why}");
        assert!(of(Some([0, 1, 1])).is_err());
    }
}
