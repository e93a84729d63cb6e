//! Widgets of panes: ruled titles, bars, score breakdowns, lists, rendered texts.

pub mod bars;
pub mod breakdown;
pub mod code;
pub mod command_rows;
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

pub use command_rows::command_rows;
pub use format::{
    byte_size, count, counted, elapsed_micros, plain_score, score, signed, signed_count, token_count, tokens,
};
pub use painter::{Painter, fade};
pub use relative_time::{
    age, ago, day, duration, lasting, moment, moment_since, time_of_day, until_older, until_younger,
};
pub use rich::{RichLine, Seg};
pub use rule::{BorderJunction, Title, column_divider, divider, pairs};
pub use scroll::{Scroll, rows_above_note};
pub use text_width::{cells, cut_end, cut_middle, exact, head, shown};
pub use wrap::{break_code, cut_last, cut_line, wrap, wrap_to};
