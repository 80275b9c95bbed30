//! One description of an instruction's modifiers, read, written, or drawn at random.
//!
//! # Idea
//! A family's description names its modifiers once, in the order in which they are printed, each
//! with the field it fills and the values PTX allows. [`Modifiers`] is either the words of a text,
//! which the description takes one by one, or the text that it makes.
//! # Invariants
//! - **W1** What no description takes is an error: no modifier is silently accepted.
//! - **W2** Writing and then reading gives the fields back (tested on drawn instructions).
//! # Not here
//! The order of modifiers of different kinds: assembly written by hand and by LLVM disagree on it
//! (`atom.acq_rel.gpu`, `atom.gpu.acq_rel`), and it carries no meaning.

use std::{fmt::Display, str::FromStr};

use crate::ir::{Ordering, Scalar, Scope};

/// A vocabulary of the IR: words that a modifier may be.
pub(in crate::syntax) trait Word: Copy + PartialEq + FromStr + Display {}
impl<T: Copy + PartialEq + FromStr + Display> Word for T {}

/// What is wrong with an instruction's modifiers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::syntax) enum Trouble {
    Unknown(String),
    Missing(String),
}

enum Mode<'a> {
    Read {
        /// Words that nothing has taken yet.
        left: Vec<&'a str>,
        /// The first thing that was looked for in vain.
        missing: Option<String>,
    },
    Write(String),
    /// Each choice is the next number of the list, 0 when it is spent.
    #[cfg(test)]
    Draw(std::vec::IntoIter<u16>),
}

pub(in crate::syntax) struct Modifiers<'a>(Mode<'a>);

impl<'a> Modifiers<'a> {
    /// Reads words, given without their dots.
    pub fn read(words: &[&'a str]) -> Self {
        Self(Mode::Read { left: words.to_vec(), missing: None })
    }

    pub fn write() -> Self {
        Self(Mode::Write(String::new()))
    }

    #[cfg(test)]
    pub fn draw(choices: Vec<u16>) -> Self {
        Self(Mode::Draw(choices.into_iter()))
    }

    /// What reading found wrong. A word that nothing took says more than what lacks in its place.
    pub fn trouble(self) -> Option<Trouble> {
        if let Mode::Read { left, missing } = self.0 {
            let unknown = left.first().map(|&word| Trouble::Unknown(word.to_owned()));
            unknown.or(missing.map(Trouble::Missing))
        } else {
            None
        }
    }

    /// What was written.
    pub fn text(self) -> String {
        if let Mode::Write(text) = self.0 { text } else { String::new() }
    }

    /// The opcode itself, which reading has already seen.
    pub fn opcode(&mut self, name: &str) {
        if let Mode::Write(text) = &mut self.0 {
            text.push_str(name);
        }
    }

    /// A word that always stands there.
    pub fn word(&mut self, word: &str) {
        let mut found = true;
        self.flag(word, &mut found);
        if !found {
            self.missing(format!("`.{word}`"));
        }
    }

    /// A word that stands there or not.
    pub fn flag(&mut self, word: &str, on: &mut bool) {
        match &mut self.0 {
            Mode::Read { left, .. } => {
                let at = left.iter().position(|&other| other == word);
                *on = at.is_some();
                if let Some(at) = at {
                    left.remove(at);
                }
            }
            Mode::Write(text) if *on => push(text, word),
            Mode::Write(_) => {}
            #[cfg(test)]
            Mode::Draw(choices) => *on = choices.next().unwrap_or(0) % 2 == 1,
        }
    }

    /// One of two words; `second` says which.
    pub fn either(&mut self, words: [&str; 2], second: &mut bool) {
        let mut at = usize::from(*second);
        self.index(&words, &mut at);
        *second = at == 1;
    }

    /// One of some words, by number.
    pub fn index(&mut self, words: &[&str], at: &mut usize) {
        match &mut self.0 {
            Mode::Read { left, .. } => {
                let found = left.iter().enumerate().find_map(|(from, word)| {
                    words.iter().position(|known| known == word).map(|at| (from, at))
                });
                if let Some((from, which)) = found {
                    *at = which;
                    left.remove(from);
                } else {
                    self.missing(format!("one of {}", listed(words)));
                }
            }
            Mode::Write(text) => push(text, words.get(*at).copied().unwrap_or_default()),
            #[cfg(test)]
            Mode::Draw(choices) => *at = usize::from(choices.next().unwrap_or(0)) % words.len(),
        }
    }

    /// One of some words, as text.
    pub fn spelled(&mut self, words: &[&str], value: &mut String) {
        let mut at = words.iter().position(|word| word == value).unwrap_or(0);
        self.index(words, &mut at);
        *value = words[at].to_owned();
    }

    /// Several words that only together mean something, joined by dots.
    pub fn phrase(&mut self, phrases: &[&str], value: &mut String) {
        match &mut self.0 {
            Mode::Read { left, .. } => {
                let joined = left.join(".");
                if phrases.contains(&joined.as_str()) {
                    left.clear();
                    *value = joined;
                }
            }
            Mode::Write(text) => push(text, value),
            #[cfg(test)]
            Mode::Draw(choices) => {
                let choice = usize::from(choices.next().unwrap_or(0)) % phrases.len();
                *value = phrases[choice].to_owned();
            }
        }
    }

    /// Everything, the opcode included, is the name of the instruction.
    pub fn whole(&mut self, name: &str) {
        match &mut self.0 {
            Mode::Read { left, .. } => left.clear(),
            Mode::Write(text) => text.push_str(name),
            #[cfg(test)]
            Mode::Draw(_) => {}
        }
    }

    /// A value of a vocabulary that must stand there.
    pub fn one<T: Word>(&mut self, value: &mut T, allowed: &[T]) {
        let mut found = Some(*value);
        self.maybe(&mut found, allowed);
        match found {
            Some(found) => *value = found,
            None if self.drawing() => *value = allowed[0],
            None => self.missing(format!("one of {}", listed(allowed))),
        }
    }

    /// A value of a vocabulary that may be left out, and what is meant then.
    pub fn or<T: Word>(&mut self, value: &mut T, absent: T, allowed: &[T]) {
        let mut found = (*value != absent).then_some(*value);
        self.maybe(&mut found, allowed);
        *value = found.unwrap_or(absent);
    }

    /// A value of a vocabulary that may be left out.
    pub fn maybe<T: Word>(&mut self, value: &mut Option<T>, allowed: &[T]) {
        match &mut self.0 {
            Mode::Read { left, .. } => {
                *value = None;
                let found = left
                    .iter()
                    .enumerate()
                    .find_map(|(at, word)| word.parse().ok().map(|value: T| (at, value)));
                if let Some((at, found)) = found.filter(|(_, found)| allowed.contains(found)) {
                    *value = Some(found);
                    left.remove(at);
                }
            }
            Mode::Write(text) => {
                if let Some(value) = value {
                    push(text, &value.to_string());
                }
            }
            #[cfg(test)]
            Mode::Draw(choices) => {
                let choice = usize::from(choices.next().unwrap_or(0));
                *value = allowed.get(choice % (allowed.len() + 1)).copied();
            }
        }
    }

    /// `.v4` or `.x4`: a count behind a letter; 1 is left out where `absent` says so.
    pub fn count(&mut self, letter: char, value: &mut u8, absent: Option<u8>, allowed: &[u8]) {
        let words: Vec<String> = allowed.iter().map(|count| format!("{letter}{count}")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let here = match &self.0 {
            Mode::Read { left, .. } => left.iter().any(|word| words.contains(word)),
            Mode::Write(_) => absent != Some(*value),
            #[cfg(test)]
            Mode::Draw(_) => true,
        };
        if let (false, Some(absent)) = (here, absent) {
            *value = absent;
            return;
        }
        let mut at = allowed.iter().position(|count| count == value).unwrap_or(0);
        self.index(&words, &mut at);
        *value = allowed[at];
    }

    /// Any number of words without effect on the result, in the order of the text.
    pub fn hints(&mut self, known: &[&str], hints: &mut Vec<String>) {
        match &mut self.0 {
            Mode::Read { left, .. } => {
                hints.extend(
                    left.iter().filter(|word| known.contains(word)).map(ToString::to_string),
                );
                left.retain(|word| !known.contains(word));
            }
            Mode::Write(text) => hints.iter().for_each(|hint| push(text, hint)),
            #[cfg(test)]
            Mode::Draw(choices) => {
                let choice = usize::from(choices.next().unwrap_or(0)) % (known.len() + 1);
                hints.extend(known.get(choice).map(ToString::to_string));
            }
        }
    }

    /// `.weak`, `.volatile`, `.acquire.gpu` and their like.
    ///
    /// `absent` is what no word means; `kinds` are the semantics that the instruction has. Where
    /// no word means weak, others need their scope; elsewhere one left out is that of `absent`.
    pub fn ordering(&mut self, value: &mut Ordering, absent: Ordering, kinds: &[Semantics]) {
        let (absent_kind, absent_scope) = parts(absent);
        let (mut kind, mut scope) = parts(*value);
        if absent_kind == Semantics::Weak {
            self.or(&mut kind, absent_kind, kinds);
        } else {
            self.or_said(&mut kind, absent_kind, kinds);
        }
        if matches!(kind, Semantics::Weak | Semantics::Volatile) {
            *value = if kind == Semantics::Weak { Ordering::Weak } else { Ordering::Volatile };
            return;
        }
        if kind == Semantics::Mmio {
            self.word("relaxed");
            self.word("sys");
            *value = Ordering::Mmio;
            return;
        }
        if absent_kind == Semantics::Weak {
            self.one(&mut scope, SCOPES);
        } else {
            self.or_said(&mut scope, absent_scope, SCOPES);
        }
        *value = match kind {
            Semantics::Acquire => Ordering::Acquire(scope),
            Semantics::Release => Ordering::Release(scope),
            Semantics::AcqRel => Ordering::AcqRel(scope),
            Semantics::Relaxed | Semantics::Weak | Semantics::Volatile | Semantics::Mmio => {
                Ordering::Relaxed(scope)
            }
        };
    }

    /// As [`Self::or`], but written in any case.
    pub fn or_said<T: Word>(&mut self, value: &mut T, absent: T, allowed: &[T]) {
        let mut found = Some(*value);
        self.maybe(&mut found, allowed);
        *value = found.unwrap_or(absent);
    }

    fn drawing(&self) -> bool {
        #[cfg(test)]
        if matches!(self.0, Mode::Draw(_)) {
            return true;
        }
        false
    }

    fn missing(&mut self, what: String) {
        if let Mode::Read { missing, .. } = &mut self.0 {
            missing.get_or_insert(what);
        }
    }
}

/// The kind of an [`Ordering`], its scope apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumString, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub(in crate::syntax) enum Semantics {
    Weak,
    Volatile,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    Mmio,
}

const SCOPES: &[Scope] = &[Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];

fn parts(ordering: Ordering) -> (Semantics, Scope) {
    match ordering {
        Ordering::Weak => (Semantics::Weak, Scope::Gpu),
        Ordering::Volatile => (Semantics::Volatile, Scope::Sys),
        Ordering::Relaxed(scope) => (Semantics::Relaxed, scope),
        Ordering::Acquire(scope) => (Semantics::Acquire, scope),
        Ordering::Release(scope) => (Semantics::Release, scope),
        Ordering::AcqRel(scope) => (Semantics::AcqRel, scope),
        Ordering::Mmio => (Semantics::Mmio, Scope::Sys),
    }
}

fn push(text: &mut String, word: &str) {
    text.push('.');
    text.push_str(word);
}

/// Words as an error shows them.
fn listed<T: Display>(words: &[T]) -> String {
    words.iter().map(|word| format!("`.{word}`")).collect::<Vec<_>>().join(", ")
}

/// The words of a text while its family is still being found.
#[derive(Clone, Copy)]
pub(in crate::syntax) struct Peek<'w, 'a>(pub &'w [&'a str]);

impl Peek<'_, '_> {
    pub fn has(self, word: &str) -> bool {
        self.0.contains(&word)
    }

    /// Whether these are the first words after the opcode.
    pub fn starts(self, words: &[&str]) -> bool {
        self.0.starts_with(words)
    }

    /// The type suffix: the last word that is a type.
    pub fn ty(self) -> Option<Scalar> {
        self.0.iter().rev().find_map(|word| word.parse().ok())
    }

    /// The number of types among the words.
    pub fn types(self) -> usize {
        self.0.iter().filter(|word| word.parse::<Scalar>().is_ok()).count()
    }
}
