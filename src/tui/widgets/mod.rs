//! Parts that panes are drawn from: ruled titles, bars, ledgers, lists, rendered texts.

pub mod ages;
pub mod bars;
pub mod code;
pub mod dag;
pub mod figures;
pub mod fuzzy;
pub mod hex;
pub mod json_lines;
pub mod json_text;
pub mod ledger;
pub mod markdown;
pub mod marked;
pub mod measure;
pub mod pen;
pub mod render;
pub mod rich;
pub mod rule;
pub mod scroll;
pub mod tree;
pub mod wrap;
