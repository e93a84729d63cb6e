//! Parts that panes are drawn from: ruled titles, bars, ledgers, lists, rendered texts.

pub mod rich;
