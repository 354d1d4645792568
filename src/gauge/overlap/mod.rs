//! The overlap operator of Neuberger with the sign function of Q by low modes and a minmax polynomial, its index and
//! its inversion (Giusti, Hoelbling, Luescher, Wittig, CPC 153 (2003) 31; Walk, Wittig, Dranischnikow, Schoemer 2010).

mod build;
mod fit;
mod index;
mod modes;
mod operator;
mod report;
mod sign;
mod solve;

pub use build::SignParts;
pub use fit::Fit;
pub use index::OverlapIndex;
pub use operator::{ChiralNormal, OverlapOperator, overlap_scale};
pub use report::SignReport;
pub use sign::Sign;
pub use solve::relaxed_gradient;

#[cfg(test)]
mod tests;
