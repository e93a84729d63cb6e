//! Widgets of panes: ruled titles, bars, score breakdowns, lists, rendered texts.

pub mod bars;
pub mod breakdown;
pub mod code;
pub mod dag;
pub mod format;
pub mod fuzzy;
pub mod hex;
pub mod highlight;
pub mod json_lines;
pub mod json_text;
pub mod markdown;
pub mod painter;
pub mod relative_time;
pub mod render;
pub mod rich;
pub mod rule;
pub mod scroll;
pub mod text_width;
pub mod tree;
pub mod word_diff;
pub mod wrap;
