//! What the fields of each attribute mean, and the rules that they keep.

use super::syntax::{Attribute, Dictionary, Entry, Located, Value};
use super::tile::Column;
use super::{Blocked, Encoding, EncodingError, Linear};
use crate::layout::{Dim, Shape};

/// The encoding that an attribute stands for.
pub(super) fn encoding(attribute: Attribute) -> Result<Encoding, EncodingError> {
    let fields = Fields::new(attribute.fields);
    match attribute.name.as_str() {
        "ttg.blocked" => blocked(fields),
        "ttg.slice" => slice(fields),
        "ttg.linear" => linear(fields),
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
