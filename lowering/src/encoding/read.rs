//! What the fields of each attribute mean, and the rules that they keep.

use super::amd::{HeldAlong, Lanes};
use super::nvidia::{Generation, SMALLEST};
use super::operand::{Operand, Unit};
use super::syntax::{Attribute, Dictionary, Entry, Located, Value};
use super::tile::Column;
use super::{Blocked, DotOperand, Encoding, EncodingError, Linear, Mfma, Mma, Wmma};
use crate::layout::{Dim, Shape};

/// The encoding that an attribute stands for.
pub(super) fn encoding(attribute: Attribute) -> Result<Encoding, EncodingError> {
    let fields = Fields::new(attribute.fields);
    match attribute.name.as_str() {
        "ttg.blocked" => blocked(fields),
        "ttg.slice" => slice(fields),
        "ttg.linear" => linear(fields),
        "ttg.nvidia_mma" => nvidia_mma(fields),
        "ttg.amd_mfma" => amd_mfma(fields),
        "ttg.amd_wmma" => amd_wmma(fields),
        "ttg.dot_op" => dot_operand(fields),
        name => Err(EncodingError::Unknown { encoding: format!("#{name}") }),
    }
}

fn blocked(mut fields: Fields) -> Result<Encoding, EncodingError> {
    let size_per_thread = fields.shape("sizePerThread", None)?;
    let rank = size_per_thread.rank();
    let blocked = Blocked {
        threads_per_warp: fields.shape("threadsPerWarp", Some(rank))?,
        warps_per_cta: fields.shape("warpsPerCTA", Some(rank))?,
        order: fields.order("order", rank)?,
        cluster: fields.cluster(rank)?,
        size_per_thread,
    };
    fields.finish()?;
    Ok(Encoding::Blocked(blocked))
}

fn slice(mut fields: Fields) -> Result<Encoding, EncodingError> {
    let (at, dim) = fields.integer("dim")?;
    let parent = encoding(fields.attribute("parent")?)?;
    fields.finish()?;
    match usize::try_from(dim) {
        Ok(dim) if dim < parent.rank() && parent.rank() > 1 => {
            Ok(Encoding::Slice { dim: Dim(dim), parent: Box::new(parent) })
        }
        _ => {
            let expected = "one of the parent's dimensions, of which there are at least two";
            Err(EncodingError::Field { at, field: "dim", expected })
        }
    }
}

fn linear(mut fields: Fields) -> Result<Encoding, EncodingError> {
    const PLACES: [&str; 4] = ["register", "lane", "warp", "block"];
    let at = fields.at;
    let mut places = Vec::new();
    for place in PLACES {
        places.push((place, fields.required(place)?));
    }
    fields.finish()?;
    let rank = places.iter().find_map(|(_, bases)| first_basis_length(bases)).ok_or(
        EncodingError::Field { at, field: PLACES[0], expected: "bases, so that the rank is known" },
    )?;
    let mut columns = Vec::new();
    for (place, bases) in places {
        columns.push(self::columns(place, bases, rank)?);
    }
    let [register, lane, warp, block]: [Vec<Column>; 4] =
        columns.try_into().unwrap_or_else(|_| unreachable!("one list of columns for each place"));
    let all = register.iter().chain(&lane).chain(&warp).chain(&block);
    permutation(at, PLACES[0], rank, all)?;
    Ok(Encoding::Linear(Linear { rank, register, lane, warp, block }))
}

fn nvidia_mma(mut fields: Fields) -> Result<Encoding, EncodingError> {
    let (_, major) = fields.integer("versionMajor")?;
    let (_, minor) = fields.integer("versionMinor")?;
    let generation = match major {
        2 => Generation::Ampere,
        3 => Generation::Hopper,
        _ => return Err(unknown_version("#ttg.nvidia_mma", &format!("{major}.{minor}"))),
    };
    let (at, warps) = fields.matrix("warpsPerCTA")?;
    let rank = warps.rank();
    let (shape_at, instruction) = fields.powers("instrShape")?;
    let fault = |at, field, expected| Err(EncodingError::Field { at, field, expected });
    let (rows, columns) = match (generation, rank, instruction.as_slice()) {
        (Generation::Ampere, 2, &[m, n]) | (Generation::Ampere, 3, &[0, m, n]) => (m, n),
        (Generation::Hopper, 2, &[m, n, _]) => (m, n),
        (Generation::Hopper, 3, _) => return fault(at, "warpsPerCTA", "of rank 2 from Hopper on"),
        _ => return fault(shape_at, "instrShape", "one number per dimension of the instruction"),
    };
    if rows < SMALLEST || columns < SMALLEST {
        return fault(shape_at, "instrShape", "at least 8 rows and 8 columns");
    }
    let mma = Mma { generation, rows, columns, warps, cluster: fields.cluster(rank)? };
    fields.finish()?;
    Ok(Encoding::Mma(mma))
}

fn amd_mfma(mut fields: Fields) -> Result<Encoding, EncodingError> {
    let (_, version) = fields.integer("version")?;
    if !(1..=4).contains(&version) {
        return Err(unknown_version("#ttg.amd_mfma", &version.to_string()));
    }
    let (_, warps) = fields.matrix("warpsPerCTA")?;
    let rank = warps.rank();
    let (at, instruction) = fields.powers("instrShape")?;
    let held_along = fields.held_along("isTransposed")?;
    let (rows, columns) = match (instruction.as_slice(), held_along) {
        (&[5, 5, _] | &[4, 4, _] | &[2, 6, _], _) | (&[6, 2, _], HeldAlong::Columns) => {
            (instruction[0], instruction[1])
        }
        _ => {
            let expected = "32x32, 16x16, 4x64 or, transposed, 64x4, and the depth";
            return Err(EncodingError::Field { at, field: "instrShape", expected });
        }
    };
    let height = match fields.optional("elementBitWidth") {
        None => 2,
        Some(found) => match integer("elementBitWidth", &found)? {
            32 => 2,
            64 => 0,
            _ => {
                let (at, field, expected) = (found.at, "elementBitWidth", "32 or 64");
                return Err(EncodingError::Field { at, field, expected });
            }
        },
    };
    let cluster = fields.cluster(rank)?;
    let tiles_per_warp = match fields.has("tilesPerWarp") {
        true => fields.shape("tilesPerWarp", Some(rank))?,
        false => Shape::from_extents(&vec![1; rank])?,
    };
    fields.finish()?;
    let mfma = Mfma { rows, columns, height, held_along, warps, tiles_per_warp, cluster };
    Ok(Encoding::Mfma(mfma))
}

fn amd_wmma(mut fields: Fields) -> Result<Encoding, EncodingError> {
    let (_, version) = fields.integer("version")?;
    let lanes = match version {
        1 => Lanes::Interleaved,
        2 | 3 => Lanes::Halves,
        _ => return Err(unknown_version("#ttg.amd_wmma", &version.to_string())),
    };
    let held_along = fields.held_along("isTranspose")?;
    let (at, instruction) = match fields.has("instrShape") {
        true => fields.powers("instrShape")?,
        false => (fields.at, vec![4, 4, 4]),
    };
    let instruction = match (version, instruction.as_slice()) {
        (1..=3, &[4, 4, depth]) => [4, 4, depth],
        (2..=3, &[5, 4, depth]) => [5, 4, depth],
        _ => {
            let expected = "16x16 or, from version 2 on, 32x16, and the depth";
            return Err(EncodingError::Field { at, field: "instrShape", expected });
        }
    };
    let (rank, repeat, warps) = copies(&mut fields)?;
    let cluster = fields.cluster(rank)?;
    fields.finish()?;
    let wmma = Wmma { rank, lanes, held_along, instruction, repeat, warps, cluster };
    Ok(Encoding::Wmma(wmma))
}

/// `ctaLayout`: how repetitions and warps count copies of an instruction's tile.
fn copies(fields: &mut Fields) -> Result<(usize, Vec<Column>, Vec<Column>), EncodingError> {
    let found = fields.required("ctaLayout")?;
    let at = found.at;
    let fault = |expected| EncodingError::Field { at, field: "ctaLayout", expected };
    let Value::Dictionary(layout) = found.value else {
        return Err(fault("a dictionary"));
    };
    let mut layout = Fields::new(layout);
    let warps = layout.required("warp")?;
    let repeat = layout.optional("register");
    layout.finish()?;
    let rank = first_basis_length(&warps)
        .or_else(|| repeat.as_ref().and_then(first_basis_length))
        .filter(|rank| matches!(rank, 2 | 3))
        .ok_or_else(|| fault("bases of rank 2 or 3"))?;
    let warps = columns("warp", warps, rank)?;
    let repeat = repeat.map_or(Ok(Vec::new()), |repeat| columns("register", repeat, rank))?;
    permutation(at, "ctaLayout", rank, repeat.iter().chain(&warps))?;
    Ok((rank, repeat, warps))
}

fn dot_operand(mut fields: Fields) -> Result<Encoding, EncodingError> {
    let at = fields.at;
    let fault = |at, field, expected| Err(EncodingError::Field { at, field, expected });
    let operand = match fields.integer("opIdx")? {
        (_, 0) => Operand::A,
        (_, 1) => Operand::B,
        (at, _) => return fault(at, "opIdx", "0 or 1"),
    };
    let parent = encoding(fields.attribute("parent")?)?;
    let mut width = || fields.logarithm("kWidth");
    let unit = match parent {
        Encoding::Blocked(result) if result.rank() >= 2 => Unit::Threads(result),
        Encoding::Mma(result) => {
            if result.generation == Generation::Hopper && operand == Operand::B {
                return fault(at, "opIdx", "0 under wgmma, which reads B from shared memory");
            }
            Unit::Mma { width: width()?, result }
        }
        Encoding::Mfma(result) => Unit::Mfma { width: width()?, result },
        Encoding::Wmma(result) => Unit::Wmma { width: width()?, result },
        _ => return fault(at, "parent", "the layout of a product's result"),
    };
    fields.finish()?;
    Ok(Encoding::DotOperand(DotOperand { operand, unit }))
}

fn unknown_version(name: &str, version: &str) -> EncodingError {
    EncodingError::Unknown { encoding: format!("{name}, version {version},") }
}

fn first_basis_length(bases: &Located) -> Option<usize> {
    match &bases.value {
        Value::List(bases) => bases.first().and_then(|basis| match &basis.value {
            Value::List(offsets) => Some(offsets.len()),
            _ => None,
        }),
        _ => None,
    }
}

/// The fields of one attribute; what nobody has asked for at the end is an error.
struct Fields {
    at: usize,
    entries: Vec<Entry>,
}

impl Fields {
    fn new(fields: Dictionary) -> Fields {
        Fields { at: fields.at, entries: fields.entries }
    }

    fn optional(&mut self, field: &'static str) -> Option<Located> {
        let index = self.entries.iter().position(|entry| entry.key == field)?;
        Some(self.entries.remove(index).value)
    }

    fn required(&mut self, field: &'static str) -> Result<Located, EncodingError> {
        self.optional(field).ok_or(EncodingError::Missing { at: self.at, field })
    }

    fn integer(&mut self, field: &'static str) -> Result<(usize, u64), EncodingError> {
        let found = self.required(field)?;
        Ok((found.at, integer(field, &found)?))
    }

    fn attribute(&mut self, field: &'static str) -> Result<Attribute, EncodingError> {
        let found = self.required(field)?;
        match found.value {
            Value::Attribute(attribute) => Ok(attribute),
            _ => Err(EncodingError::Field { at: found.at, field, expected: "an attribute" }),
        }
    }

    fn has(&self, field: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == field)
    }

    /// A power of two, as its logarithm.
    fn logarithm(&mut self, field: &'static str) -> Result<u32, EncodingError> {
        match self.integer(field)? {
            (_, value) if value.is_power_of_two() => Ok(value.trailing_zeros()),
            (at, _) => Err(EncodingError::Field { at, field, expected: "a power of two" }),
        }
    }

    /// A list of powers of two, as logarithms.
    fn powers(&mut self, field: &'static str) -> Result<(usize, Vec<u32>), EncodingError> {
        let found = self.required(field)?;
        let values = integers(field, &found)?;
        if !values.iter().all(|value| value.is_power_of_two()) {
            return Err(EncodingError::Field { at: found.at, field, expected: "powers of two" });
        }
        Ok((found.at, values.iter().map(|value| value.trailing_zeros()).collect()))
    }

    /// Powers of two for the two dimensions of a matrix, or for a batch of them.
    fn matrix(&mut self, field: &'static str) -> Result<(usize, Shape), EncodingError> {
        let at = self.entries.iter().find(|entry| entry.key == field).map(|entry| entry.value.at);
        let at = at.unwrap_or(self.at);
        let shape = self.shape(field, None)?;
        if !matches!(shape.rank(), 2 | 3) {
            return Err(EncodingError::Field { at, field, expected: "of rank 2 or 3" });
        }
        Ok((at, shape))
    }

    fn held_along(&mut self, field: &'static str) -> Result<HeldAlong, EncodingError> {
        let found = self.required(field)?;
        match found.value {
            Value::Word(word) if word == "true" => Ok(HeldAlong::Columns),
            Value::Word(word) if word == "false" => Ok(HeldAlong::Rows),
            _ => {
                let expected = "true or false";
                Err(EncodingError::Field { at: found.at, field, expected })
            }
        }
    }

    /// A list of powers of two; of any length but zero when no rank is given.
    fn shape(&mut self, field: &'static str, rank: Option<usize>) -> Result<Shape, EncodingError> {
        let found = self.required(field)?;
        let at = found.at;
        let extents = integers(field, &found)?;
        if extents.is_empty() || rank.is_some_and(|rank| rank != extents.len()) {
            return Err(EncodingError::Field { at, field, expected: "one number per dimension" });
        }
        Shape::from_extents(&extents).map_err(|_| EncodingError::Field {
            at,
            field,
            expected: "powers of two with a product below 2^64",
        })
    }

    fn order(&mut self, field: &'static str, rank: usize) -> Result<Vec<Dim>, EncodingError> {
        let found = self.required(field)?;
        let order = integers(field, &found)?;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..rank as u64) {
            let expected = "a permutation of the dimensions";
            return Err(EncodingError::Field { at: found.at, field, expected });
        }
        Ok(order.into_iter().map(|dim| Dim(dim as usize)).collect())
    }

    /// The columns that number the CTAs of a cluster; none when the field is not there.
    fn cluster(&mut self, rank: usize) -> Result<Vec<Column>, EncodingError> {
        const FIELD: &str = "CGALayout";
        let Some(found) = self.optional(FIELD) else {
            return Ok(Vec::new());
        };
        let at = found.at;
        let columns = columns(FIELD, found, rank)?;
        permutation(at, FIELD, rank, columns.iter())?;
        Ok(columns)
    }

    fn finish(self) -> Result<(), EncodingError> {
        match self.entries.into_iter().next() {
            None => Ok(()),
            Some(entry) => Err(EncodingError::Stray { at: entry.at, field: entry.key }),
        }
    }
}

fn integer(field: &'static str, found: &Located) -> Result<u64, EncodingError> {
    match found.value {
        Value::Integer(value) => Ok(value),
        _ => Err(EncodingError::Field { at: found.at, field, expected: "a number" }),
    }
}

fn list<'a>(field: &'static str, found: &'a Located) -> Result<&'a [Located], EncodingError> {
    match &found.value {
        Value::List(items) => Ok(items),
        _ => Err(EncodingError::Field { at: found.at, field, expected: "a list" }),
    }
}

fn integers(field: &'static str, found: &Located) -> Result<Vec<u64>, EncodingError> {
    list(field, found)?.iter().map(|item| integer(field, item)).collect()
}

/// A list of bases, each of which moves along one dimension at most.
fn columns(field: &'static str, found: Located, rank: usize) -> Result<Vec<Column>, EncodingError> {
    list(field, &found)?.iter().map(|basis| column(field, basis, rank)).collect()
}

fn column(field: &'static str, basis: &Located, rank: usize) -> Result<Column, EncodingError> {
    let offsets = integers(field, basis)?;
    let fault = |expected| EncodingError::Field { at: basis.at, field, expected };
    if offsets.len() != rank {
        return Err(fault("bases with one number per dimension"));
    }
    let mut moved = offsets.iter().enumerate().filter(|&(_, &offset)| offset != 0);
    match (moved.next(), moved.next()) {
        (None, _) => Ok(Column::Broadcast),
        (Some((dim, offset)), None) if offset.is_power_of_two() => {
            Ok(Column::Bit(Dim(dim), offset.trailing_zeros()))
        }
        _ => Err(fault("bases that are zero or one power of two")),
    }
}

/// Triton's rule: without the broadcast bits, the columns are a permutation of the index bits.
fn permutation<'a>(
    at: usize,
    field: &'static str,
    rank: usize,
    columns: impl Iterator<Item = &'a Column>,
) -> Result<(), EncodingError> {
    let mut seen = vec![0u64; rank];
    let mut distinct = true;
    for column in columns {
        if let Column::Bit(dim, bit) = *column {
            distinct &= seen[dim.0] >> bit & 1 == 0;
            seen[dim.0] |= 1 << bit;
        }
    }
    let gapless = seen.iter().all(|bits| (bits & bits.wrapping_add(1)) == 0);
    if distinct && gapless {
        return Ok(());
    }
    Err(EncodingError::Field { at, field, expected: "a permutation of the index bits" })
}
