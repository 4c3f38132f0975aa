//! Views of a [`Plan`](reveille_plan::Plan): one screen of a terminal, and a page. Both show
//! the same rows, made in `rows.rs`, under the same sentence, made in `words.rs`.

mod data;
mod html;
mod rows;
mod terminal;
mod words;

pub use html::plan_html;
pub use terminal::plan_table;
pub use words::headroom;
