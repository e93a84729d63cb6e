//! Where skills come from: roots, scan, precedence and shadowing, hot reload, warm-start cache.
//! Hands out immutable snapshots ([`Catalogue`]) and a stream of changes. Never ranks.

mod catalogue;

pub use catalogue::{
    Alias, Catalogue, Change, Entry, Lookup, Root, RootOrigin, RootState, ScanProgress, Shadowed,
};
