//! One value a thread, or one for all of them.

use std::rc::Rc;

/// A value for each thread of the CTA.
#[derive(Clone, Debug)]
pub enum Each<T> {
    All(T),
    /// As long as the CTA has threads.
    By(Rc<[T]>),
}

impl<T: Copy + PartialEq> Each<T> {
    #[inline]
    pub fn at(&self, thread: usize) -> T {
        match self {
            Each::All(value) => *value,
            Each::By(values) => values[thread],
        }
    }

    /// The value that all threads hold, where they do by construction.
    pub fn uniform(&self) -> Option<T> {
        match self {
            Each::All(value) => Some(*value),
            Each::By(_) => None,
        }
    }

    /// From a function of the thread; one value where all are equal.
    #[inline]
    pub fn from_fn(threads: usize, value: impl FnMut(usize) -> T) -> Self {
        let values: Rc<[T]> = (0..threads).map(value).collect();
        Self::gathered(values)
    }

    pub fn gathered(values: Rc<[T]>) -> Self {
        match values.first() {
            Some(first) if values.iter().all(|value| value == first) => Each::All(*first),
            Some(_) | None => Each::By(values),
        }
    }

    #[inline]
    pub fn map<U: Copy + PartialEq>(&self, mut f: impl FnMut(T) -> U) -> Each<U> {
        match self {
            Each::All(value) => Each::All(f(*value)),
            Each::By(values) => Each::gathered(values.iter().map(|value| f(*value)).collect()),
        }
    }

    #[inline]
    pub fn zip<U, V>(&self, other: &Each<U>, mut f: impl FnMut(T, U) -> V) -> Each<V>
    where
        U: Copy + PartialEq,
        V: Copy + PartialEq,
    {
        match (self, other) {
            (Each::All(a), Each::All(b)) => Each::All(f(*a, *b)),
            (Each::By(a), b) => {
                Each::gathered(a.iter().enumerate().map(|(t, a)| f(*a, b.at(t))).collect())
            }
            (Each::All(a), Each::By(b)) => Each::gathered(b.iter().map(|b| f(*a, *b)).collect()),
        }
    }

    /// Whether the predicate holds for every thread.
    pub fn all(&self, mut f: impl FnMut(T) -> bool) -> bool {
        match self {
            Each::All(value) => f(*value),
            Each::By(values) => values.iter().all(|value| f(*value)),
        }
    }

    /// Each thread's value taken from another thread; `None` keeps nothing there.
    pub fn permuted(&self, threads: usize, source: impl Fn(usize) -> usize) -> Self {
        match self {
            Each::All(value) => Each::All(*value),
            Each::By(values) => Self::from_fn(threads, |thread| values[source(thread)]),
        }
    }
}
