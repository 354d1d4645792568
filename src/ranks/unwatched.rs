//! Where ranks have no line to the program that started them: nothing is known of how they end.

use std::convert::Infallible;
use std::time::Duration;

/// There is none.
pub(super) struct Watch(Infallible);

impl Watch {
    pub(super) fn new() -> Option<Watch> {
        None
    }

    pub(super) fn variable(&self) -> (&'static str, &str) {
        match self.0 {}
    }

    pub(super) fn look(&mut self, _: Duration) {
        match self.0 {}
    }

    pub(super) fn lost(&self) -> Option<[usize; 3]> {
        match self.0 {}
    }

    pub(super) fn alone(&self) -> Option<Duration> {
        match self.0 {}
    }

    pub(super) fn has_spoken(&self) -> bool {
        match self.0 {}
    }
}

pub(super) fn begin(_: usize, _: usize) {}

pub(super) fn farewell() {}
