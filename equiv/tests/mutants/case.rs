//! Kernels with the launches they were made for, as a corpus's manifest tells of them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use bitstable_equiv::Launch;
use serde_json::Value as Json;

/// What a buffer's elements are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// Bits of exponent and mantissa; with infinities.
    Float(u32, u32),
    /// Eight bits without infinities.
    E4m3,
    Integer(u32),
}

impl Element {
    pub fn bits(self) -> u32 {
        match self {
            Element::Float(exponent, mantissa) => 1 + exponent + mantissa,
            Element::E4m3 => 8,
            Element::Integer(bits) => bits,
        }
    }

    fn read(name: &str) -> Option<Self> {
        Some(match name {
            "f64" => Element::Float(11, 52),
            "f32" => Element::Float(8, 23),
            "f16" => Element::Float(5, 10),
            "bf16" => Element::Float(8, 7),
            "e5m2" => Element::Float(5, 2),
            "e4m3" => Element::E4m3,
            "i64" | "u64" => Element::Integer(64),
            "i32" | "u32" => Element::Integer(32),
            "i16" | "u16" => Element::Integer(16),
            "i8" | "u8" => Element::Integer(8),
            _ => return None,
        })
    }
}

/// What a buffer holds before a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    Drawn,
    Zero,
    /// Integers from, and up to but without.
    Range(u64, u64),
}

#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    pub element: Element,
    pub count: usize,
    pub fill: Fill,
}

impl Buffer {
    pub fn bytes(&self) -> usize {
        self.count * self.element.bits() as usize / 8
    }

    /// `f32:16x128`, `i32:16=zero`, `i32:16=0..8`.
    fn read(text: &str) -> Option<Self> {
        let (element, rest) = text.split_once(':')?;
        let (sizes, fill) = rest.split_once('=').unwrap_or((rest, ""));
        let count =
            sizes.split('x').map(|size| size.parse::<usize>().ok()).product::<Option<_>>()?;
        let fill = match fill {
            "" => Fill::Drawn,
            "zero" => Fill::Zero,
            range => {
                let (low, high) = range.split_once("..")?;
                Fill::Range(low.parse().ok()?, high.parse().ok()?)
            }
        };
        Some(Self { element: Element::read(element)?, count, fill })
    }
}

/// A kernel and how it is launched.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub file: PathBuf,
    pub grid: [u32; 3],
    pub threads: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Bits of scalar parameters, by their number.
    pub scalars: BTreeMap<u32, u64>,
    /// Those that parameters point to, in order.
    pub buffers: Vec<Buffer>,
}

impl Case {
    /// What the checker is told of the launch.
    pub fn launch(&self) -> Launch {
        Launch { grid: Some(self.grid), block: None, scalars: self.scalars.clone() }
    }

    fn read(line: &str, folder: &Path) -> Option<Self> {
        let json: Json = serde_json::from_str(line).ok()?;
        if json["label"].is_null() {
            return None;
        }
        let number = |value: &Json| value.as_u64().map(|n| n as u32);
        let sizes: Vec<u32> = json["grid"].as_array()?.iter().filter_map(number).collect();
        let scalars = json["scalars"].as_object()?.iter();
        let named = json["case"].as_str()?.split(' ').skip(1);
        let arguments = named.filter_map(|word| word.split_once('=')).map(|(_, value)| value);
        let buffers = arguments.filter(|value| value.contains(':')).map(Buffer::read);
        Some(Self {
            name: format!("{} {}", json["case"].as_str()?, json["configuration"]),
            file: folder.join(json["ptx"].as_str()?),
            grid: sizes.try_into().ok()?,
            threads: number(&json["threads"])?,
            shared: number(&json["shared"])?,
            scalars: scalars
                .map(|(at, bits)| Some((at.parse().ok()?, bits.as_u64()?)))
                .collect::<Option<_>>()?,
            buffers: buffers.collect::<Option<_>>()?,
        })
    }
}

/// The cases of a corpus that ran without errors, one for each kernel text, in a fixed order.
pub fn cases(corpus: &Path) -> Vec<Case> {
    let mut manifests: Vec<PathBuf> = fs::read_dir(corpus.join("manifest"))
        .unwrap_or_else(|error| panic!("{}: {error}", corpus.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    manifests.sort();
    let mut seen = std::collections::BTreeSet::new();
    let mut all = Vec::new();
    for manifest in manifests {
        for line in fs::read_to_string(&manifest).unwrap().lines() {
            if let Some(case) = Case::read(line, &corpus.join("ptx"))
                && seen.insert(case.file.clone())
            {
                all.push(case);
            }
        }
    }
    all
}
