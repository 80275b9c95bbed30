//! The GPU that a module is for, read from the module's attributes.
//!
//! # Invariants
//! - **G1** The number of lanes is a power of two that the vendor makes: 32 on NVIDIA, 32 or 64 on
//!   AMD. So a lane bit of a layout is a lane bit of the machine.
//! # Held by
//! G1: [`Machine::of_module`], the one constructor outside tests.

use std::fmt;

use melior::ir::{Attribute, operation::OperationLike};

use crate::text;

/// Which instructions there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// An NVIDIA GPU; 90 for sm_90.
    Nvidia {
        /// The compute capability, as `major * 10 + minor`.
        capability: u32,
    },
    /// An AMD GPU.
    Amd {
        /// The architecture, such as `gfx942`.
        arch: String,
        /// Lanes of a wave: 32 or 64.
        lanes: u32,
    },
}

impl Target {
    /// The number of lane bits.
    pub fn lane_bits(&self) -> u32 {
        match self {
            Target::Nvidia { .. } => 5,
            Target::Amd { lanes, .. } => lanes.trailing_zeros(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Nvidia { capability } => write!(f, "cuda:{capability}"),
            Target::Amd { arch, lanes } => write!(f, "hip:{arch} with {lanes} lanes"),
        }
    }
}

/// A target and how a module occupies it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Which instructions there are.
    pub target: Target,
    /// Warps of a CTA, outside warp-specialised partitions.
    pub num_warps: u32,
    /// CTAs of a cluster.
    pub num_ctas: u32,
}

/// What is wrong with the attributes of a module.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TargetError {
    /// An attribute is not there.
    #[error("the module has no attribute \"{name}\"")]
    Missing {
        /// The attribute.
        name: &'static str,
    },
    /// An attribute is there and cannot be read.
    #[error("the module's attribute \"{name}\" is {found}, expected {expected}")]
    Unexpected {
        /// The attribute.
        name: &'static str,
        /// Its value.
        found: String,
        /// What it should look like.
        expected: &'static str,
    },
}

const TARGET: &str = "ttg.target";
const LANES: &str = "ttg.threads-per-warp";
const WARPS: &str = "ttg.num-warps";
const CTAS: &str = "ttg.num-ctas";

impl Machine {
    /// Reads `ttg.target`, `ttg.threads-per-warp`, `ttg.num-warps` and `ttg.num-ctas`.
    pub fn of_module<'c: 'a, 'a>(module: &impl OperationLike<'c, 'a>) -> Result<Self, TargetError> {
        let lanes = power_of_two(module, LANES)?;
        let num_warps = power_of_two(module, WARPS)?;
        let num_ctas = power_of_two(module, CTAS)?;
        let target = target(&attribute(module, TARGET)?, lanes)?;
        Ok(Machine { target, num_warps, num_ctas })
    }
}

fn attribute<'c: 'a, 'a>(
    module: &impl OperationLike<'c, 'a>,
    name: &'static str,
) -> Result<Attribute<'c>, TargetError> {
    module.attribute(name).map_err(|_| TargetError::Missing { name })
}

fn power_of_two<'c: 'a, 'a>(
    module: &impl OperationLike<'c, 'a>,
    name: &'static str,
) -> Result<u32, TargetError> {
    let attribute = attribute(module, name)?;
    let value = text::integer(attribute).and_then(|v| u32::try_from(v).ok());
    value.filter(|v| v.is_power_of_two()).ok_or_else(|| TargetError::Unexpected {
        name,
        found: attribute.to_string(),
        expected: "a power of two",
    })
}

fn target(attribute: &Attribute<'_>, lanes: u32) -> Result<Target, TargetError> {
    let unexpected = || TargetError::Unexpected {
        name: TARGET,
        found: attribute.to_string(),
        expected: "\"cuda:<capability>\" or \"hip:<architecture>\"",
    };
    let wrong_lanes =
        |expected| TargetError::Unexpected { name: LANES, found: lanes.to_string(), expected };
    let name = text::string(*attribute).ok_or_else(unexpected)?;
    match name.split_once(':') {
        Some(("cuda", _)) if lanes != 32 => Err(wrong_lanes("32 on NVIDIA")),
        Some(("cuda", capability)) => {
            Ok(Target::Nvidia { capability: capability.parse().map_err(|_| unexpected())? })
        }
        Some(("hip", _)) if lanes != 32 && lanes != 64 => Err(wrong_lanes("32 or 64 on AMD")),
        Some(("hip", arch)) if !arch.is_empty() => Ok(Target::Amd { arch: arch.to_owned(), lanes }),
        _ => Err(unexpected()),
    }
}
