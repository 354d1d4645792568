//! DMRG in pieces: `Mpo`, `Block`, superblocks as operators, `DensityMatrix`, `BlockBasis`, `DmrgState`. The algorithms
//! are scripts over these (`stdlib/dmrg/`).

mod algebra;
mod blocks;
mod density;
mod excited;
mod growth;
mod held;
mod multiplets;
mod order;
mod reading;
mod search;
mod state;
mod time;
mod uniform;

use std::sync::Arc;

pub(super) use held::need_own_name;
pub(super) use reading::{load_blocks, load_state as load};

use crate::error::Error;
use crate::manybody::dmrg::{ChainBlock, MatrixProductState, Superblock};
use crate::number::C64;
use crate::operator::Operator;
use crate::script::rooms::Rooms;

/// Registers the types and their functions.
pub(super) fn register(rooms: &mut Rooms) {
    algebra::register(rooms);
    blocks::register(rooms);
    density::register(rooms);
    excited::register(rooms);
    growth::register(rooms);
    multiplets::register(rooms);
    order::register(rooms);
    state::register(rooms);
    time::register(rooms);
    uniform::register(rooms);
    search::register(rooms);
}

/// One of two, by the numbers it is made of.
#[derive(Clone)]
pub(super) enum Either<R, C> {
    Real(R),
    Complex(C),
}

/// Runs the same code on the real or the complex case.
macro_rules! either {
    ($value:expr, $x:ident => $body:expr) => {
        match $value {
            $crate::script::api::dmrg::Either::Real($x) => $body,
            $crate::script::api::dmrg::Either::Complex($x) => $body,
        }
    };
}

/// As `either`, wrapping the results in the same case again.
macro_rules! either_map {
    ($value:expr, $x:ident => $body:expr) => {
        match $value {
            $crate::script::api::dmrg::Either::Real($x) => $crate::script::api::dmrg::Either::Real($body),
            $crate::script::api::dmrg::Either::Complex($x) => {
                $crate::script::api::dmrg::Either::Complex($body)
            }
        }
    };
}

pub(super) use {either, either_map};

/// A block, as scripts hold it.
pub(super) type AnyBlock = Either<Arc<ChainBlock<f64>>, Arc<ChainBlock<C64>>>;
/// A state, as scripts hold it.
pub(super) type AnyState = Either<Arc<MatrixProductState<f64>>, Arc<MatrixProductState<C64>>>;

/// The error for an operator that is no superblock.
fn no_superblock(what: &str) -> Error {
    Error::input(format!("`{what}` takes a superblock, and this operator is none"))
        .hint("make one with `superblock(left, right, sector)`")
}

/// The superblock behind an operator, if it is one.
pub(super) fn superblock_of(h: &Operator) -> Option<Either<&Superblock<f64>, &Superblock<C64>>> {
    match (h.exactly::<Superblock<f64>>(), h.exactly::<Superblock<C64>>()) {
        (Some(both), _) => Some(Either::Real(both)),
        (_, Some(both)) => Some(Either::Complex(both)),
        _ => None,
    }
}
