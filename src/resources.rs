//! What the kernels of a cubin take of the machine, for a host that must know whether ptxas spilled.
//!
//! # Idea
//! ptxas tells registers and stack on its log, which Triton throws away; the ELF file it makes has
//! them too. Its section `.nv.info` is a list of records, of which two matter here: a kernel's
//! registers and its stack frame. Registers that are spilled live in that frame, and so does an array
//! that a kernel indexes; which of the two it is, only a comparison of two compilations can tell.
//! # Source
//! The CUDA Binary Utilities print these records as `EIATTR_REGCOUNT` and `EIATTR_FRAME_SIZE`
//! (`cuobjdump -elf`); numbers and sizes were read off what they print.
//! # Who owns, who fails
//! Bytes that are no ELF file, or one without records, are refused. The reply is a document in JSON:
//! `kernels`, each with `name`, `registers` and `stack`, the bytes of its frame.

use std::{collections::BTreeMap, ffi::c_char};

use bitstable_passes::{place::Place, report::Diagnostics};
use object::{
    Endianness,
    elf::FileHeader64,
    read::{
        Bytes, SectionIndex,
        elf::{FileHeader, SectionHeader, Sym},
    },
};
use serde_json::{Value, json};

use crate::{
    Answer, Reply, Status,
    guard::{self, Outcome},
    refused,
};

/// The section that speaks of all kernels; those of one kernel have a suffix.
const RECORDS: &[u8] = b".nv.info";
/// The form of a record whose second half-word is the length of what follows it. In the other forms
/// that half-word is the value.
const WITH_LENGTH: u8 = 4;
/// A function's stack frame, in bytes.
const FRAME_SIZE: u8 = 0x11;
/// A function's registers.
const REGISTERS: u8 = 0x2f;

/// What one function takes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Taken {
    registers: u32,
    stack: u32,
}

/// Reads what the kernels of a cubin take.
///
/// # Safety
/// `cubin` must point at as many bytes as its length says; `out` must be valid for writing, and what it
/// held is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitstable_resources(cubin: *const c_char, len: usize, out: *mut Reply) {
    let cubin = match len {
        0 => Vec::new(),
        // SAFETY: the caller's.
        _ => unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), len) }.to_vec(),
    };
    // SAFETY: the caller's.
    unsafe { answer(cubin).send(out) }
}

fn answer(cubin: Vec<u8>) -> Answer {
    match guard::run(move || taken(&cubin).map(|kernels| described(&kernels))) {
        Outcome::Done(Ok(told)) => {
            Answer { status: Status::Done, text: told.to_string(), report: String::new() }
        }
        Outcome::Done(Err(why)) => refused(format!("the machine code: {why}"), None),
        Outcome::Failed(how) => {
            Answer::failed(Status::Bug, &Diagnostics::fault(how, Place::default()))
        }
    }
}

fn described(kernels: &BTreeMap<String, Taken>) -> Value {
    let kernels: Vec<Value> = kernels.iter().map(kernel).collect();
    json!({ "kernels": kernels })
}

fn kernel((name, taken): (&String, &Taken)) -> Value {
    json!({ "name": name, "registers": taken.registers, "stack": taken.stack })
}

/// The functions of a cubin by name.
fn taken(cubin: &[u8]) -> Result<BTreeMap<String, Taken>, String> {
    let told = |error: object::read::Error| error.to_string();
    let header = FileHeader64::<Endianness>::parse(cubin).map_err(told)?;
    let endian = header.endian().map_err(told)?;
    let sections = header.sections(endian, cubin).map_err(told)?;
    let symbols = sections.symbols(endian, cubin, object::elf::SHT_SYMTAB).map_err(told)?;
    let records = sections.section_by_name(endian, RECORDS);
    let (SectionIndex(_), section) = records.ok_or("it has no section .nv.info")?;
    let mut found = BTreeMap::new();
    for (attribute, at, value) in records_of(section.data(endian, cubin).map_err(told)?)? {
        let symbol = symbols.symbol(object::SymbolIndex(at as usize)).map_err(told)?;
        let name = symbol.name(endian, symbols.strings()).map_err(told)?;
        let name = String::from_utf8_lossy(name).into_owned();
        let taken: &mut Taken = found.entry(name).or_default();
        match attribute {
            REGISTERS => taken.registers = value,
            _ => taken.stack = value,
        }
    }
    Ok(found)
}

/// The records that matter here: what, the number of the function's symbol, and how much.
fn records_of(section: &[u8]) -> Result<Vec<(u8, u32, u32)>, String> {
    let cut = |()| "a record of .nv.info is cut short".to_owned();
    let word = |bytes: &mut Bytes<'_>| bytes.read_bytes(4).map(|w| little(w.0)).map_err(cut);
    let mut rest = Bytes(section);
    let mut found = Vec::new();
    while !rest.is_empty() {
        let head = word(&mut rest)?;
        let [form, attribute, ..] = head.to_le_bytes();
        if form != WITH_LENGTH {
            continue;
        }
        let mut content = rest.read_bytes((head >> 16) as usize).map_err(cut)?;
        if matches!(attribute, REGISTERS | FRAME_SIZE) {
            found.push((attribute, word(&mut content)?, word(&mut content)?));
        }
    }
    Ok(found)
}

/// Cubins are little-endian.
fn little(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked;

    /// Records of a function without a frame and of one that spills, and two of other forms.
    const SECTION: [u8; 44] = [
        4, 0x2f, 8, 0, 7, 0, 0, 0, 255, 0, 0, 0, // registers of symbol 7
        3, 0x50, 0, 0, // a half-word
        4, 0x37, 4, 0, 0x82, 0, 0, 0, // another attribute
        4, 0x11, 8, 0, 7, 0, 0, 0, 0x20, 1, 0, 0, // frame of symbol 7
        4, 0x12, 4, 0, 0, 0, 0, 0, // another attribute
    ];

    #[test]
    fn records_of_other_forms_are_stepped_over() {
        let found = records_of(&SECTION).unwrap();
        assert_eq!(found, [(REGISTERS, 7, 255), (FRAME_SIZE, 7, 0x120)]);
    }

    #[test]
    fn a_record_that_is_cut_short_is_refused() {
        for end in [2, 6, 11, 35] {
            assert!(records_of(&SECTION[..end]).unwrap_err().contains("cut short"), "{end}");
        }
    }

    #[test]
    fn what_is_no_cubin_is_refused() {
        let here = std::env::current_exe().and_then(std::fs::read).unwrap();
        for bytes in [&b""[..], b"\x7fELF", b".version 8.0", &here[..64], &here] {
            let (status, told) = asked::asked(bitstable_resources, bytes);
            let message = told["diagnostics"][0]["message"].as_str().unwrap_or_default();
            assert!(status == 1 && message.starts_with("the machine code: "), "{told}");
        }
    }
}
