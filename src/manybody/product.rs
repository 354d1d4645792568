//! A term as one matrix per site, in the order of the sites and with the signs of fermions included.

use super::opsum::OperatorTerm;
use super::site::LocalOperator;
use super::sites::Sites;
use crate::error::{Error, Result};
use crate::number::C64;

/// A term as a product of one matrix per site and a Jordan-Wigner string between them.
///
/// A fermionic operator on site i carries the sign operator "F" on every site below i. On sites with an operator the
/// strings are multiplied into its matrix; `string` lists the other sites that carry "F".
#[derive(Debug, Clone)]
pub struct SiteProduct {
    pub coefficient: C64,
    /// Sites in ascending order with their matrices, row by row.
    pub factors: Vec<(usize, Vec<C64>)>,
    /// Sites without a matrix that carry "F", ascending.
    pub string: Vec<usize>,
}

impl SiteProduct {
    /// A term in site order.
    ///
    /// # Errors
    /// For sites beyond the chain and operators that a site does not have.
    pub fn new(term: &OperatorTerm, sites: &Sites) -> Result<SiteProduct> {
        let context = |e: Error| e.context(format!("the term `{term}`"));
        let mut operators = Vec::with_capacity(term.factors.len());
        for (name, at) in &term.factors {
            let site = sites.site(*at).map_err(context)?;
            operators.push((site.operator(name).map_err(context)?, *at));
        }
        SiteProduct::of(term.coefficient, &operators, sites)
    }

    /// The product of operators on sites, the last acting first, in site order.
    ///
    /// # Errors
    /// For sites beyond the chain.
    pub(super) fn of(
        coefficient: C64,
        operators: &[(&LocalOperator, usize)],
        sites: &Sites,
    ) -> Result<SiteProduct> {
        let mut support: Vec<usize> = operators.iter().map(|o| o.1).collect();
        support.sort_unstable();
        support.dedup();
        let mut factors = Vec::with_capacity(support.len());
        for &k in &support {
            let site = sites.site(k)?;
            let parity = &site.operator("F")?.matrix;
            let mut matrix: Option<Vec<C64>> = None;
            for (operator, at) in operators {
                let here = match at.cmp(&k) {
                    std::cmp::Ordering::Equal => &operator.matrix,
                    std::cmp::Ordering::Greater if operator.fermionic => parity,
                    _ => continue,
                };
                matrix = Some(matrix.map_or_else(|| here.clone(), |m| multiply(&m, here, site.dim())));
            }
            factors.extend(matrix.map(|m| (k, m)));
        }
        let mut fermions: Vec<usize> = operators.iter().filter(|o| o.0.fermionic).map(|o| o.1).collect();
        fermions.sort_unstable();
        let mut string = Vec::new();
        // A site without an operator carries "F" if the number of fermionic operators above it is odd.
        for (n, &above) in fermions.iter().rev().enumerate() {
            let below = fermions.len().checked_sub(n + 2).map_or(0, |at| fermions[at]);
            if n % 2 == 0 {
                string.extend((below..above).filter(|k| support.binary_search(k).is_err()));
            }
        }
        string.sort_unstable();
        Ok(SiteProduct { coefficient, factors, string })
    }

    /// The same product with multiples of the identity moved into its coefficient, so that equal terms have the same
    /// sites.
    pub(super) fn without_identities(mut self) -> SiteProduct {
        let coefficient = &mut self.coefficient;
        self.factors.retain(|(_, matrix)| {
            let dim = matrix.len().isqrt();
            let alike = matrix
                .iter()
                .enumerate()
                .all(|(k, z)| if k % (dim + 1) == 0 { *z == matrix[0] } else { *z == C64::ZERO });
            // A zero matrix stays: the term vanishes with it.
            let identity = alike && matrix[0] != C64::ZERO;
            if identity {
                *coefficient *= matrix[0];
            }
            !identity
        });
        self
    }
}

/// The product of two square matrices stored by rows.
fn multiply(a: &[C64], b: &[C64], n: usize) -> Vec<C64> {
    let mut c = vec![C64::ZERO; n * n];
    for i in 0..n {
        for k in (0..n).filter(|k| a[i * n + k] != C64::ZERO) {
            for j in 0..n {
                c[i * n + j] += a[i * n + k] * b[k * n + j];
            }
        }
    }
    c
}
