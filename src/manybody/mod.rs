//! Many-body systems on a chain of sites: local Hilbert spaces with named operators and quantum numbers ([`Sites`]),
//! sums of products of them ([`OpSum`]), and exact symmetry sectors ([`exact`]). No device and no script here.
