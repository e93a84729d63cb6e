//! Tests of what a user does in a form by keys, and what is shown.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use serde_json::json;

use super::*;
use crate::glyphs::{ASCII, UNICODE};
use crate::pane::Draw;
use crate::theme::{Depth, Theme};
use skills_skill::contract::FieldType;

fn field(kind: FieldType) -> Field {
    Field::of(kind)
}

fn fields() -> BTreeMap<String, Field> {
    let mut fields = BTreeMap::new();
    let mut add = |name: &str, field: Field| fields.insert(name.to_owned(), field);
    let described = Some("Rows below this share are cut.".to_owned());
    add("threshold", Field { required: true, description: described, ..field(FieldType::Number) });
    add("columns", field(FieldType::Array));
    add("note", field(FieldType::String));
    add("strict", Field { default: Some(json!(false)), ..field(FieldType::Boolean) });
    let levels = ["info", "warning", "error"].map(|level| json!(level)).to_vec();
    add("level", Field { allowed: levels, ..field(FieldType::String) });
    add("limits", Field { default: Some(json!({"rows": 10})), ..field(FieldType::Object) });
    fields
}

fn press(form: &mut Form, code: KeyCode) {
    form.key(KeyEvent::new(code, KeyModifiers::NONE));
}

fn type_text(form: &mut Form, text: &str) {
    text.chars().for_each(|letter| press(form, KeyCode::Char(letter)));
}

fn screen_text(
    form: &mut Form,
    width: u16,
    height: u16,
    roomy: bool,
    ascii: bool,
) -> (String, Option<Position>) {
    let theme = Theme::shipped(if ascii { "mono" } else { "dark" }, Depth::True).unwrap();
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    let keymap = crate::keymap::Keymap::shipped().unwrap();
    let mut cx = Draw {
        keymap: &keymap,
        commands: &crate::command_lines::CommandLines::default(),
        theme: &theme,
        glyphs: if ascii { &ASCII } else { &UNICODE },
        now: Instant::now(),
        clock_ms: 0,
        focused: true,
        full_screen: false,
        split: 0,
        cursor: None,
    };
    let look = FormState { indent: 2, label: form.label_width(2, width / 3), roomy, focused: true };
    form.draw(buf.area, look, &mut buf, &mut cx);
    let cursor = cx.cursor;
    (crate::picture::text(&buf), cursor)
}

#[test]
fn hint_of_a_default_leaves_the_description_complete() {
    let description = "The text that is counted. If the skill is attached to a file, that file is read.";
    let (default, description) = (Some(json!("a")), Some(description.to_owned()));
    let text = Field { default, description, ..field(FieldType::String) };
    let mut form = Form::new(&BTreeMap::from([("text".to_owned(), text)]), &Map::new());
    let (seen, _) = screen_text(&mut form, 60, 8, false, false);
    assert!(seen.contains("Press Right") && seen.trim_end().ends_with("is read."), "{seen}");
}

#[test]
fn form_shows_expected_and_parsed_values() {
    let mut form = Form::new(&fields(), &Map::new());
    assert_eq!(form.focused(), Some("threshold"), "what has to be given comes first");
    insta::assert_snapshot!("form-empty", screen_text(&mut form, 60, 14, true, false).0);
    type_text(&mut form, "0.8");
    form.act(Action::Submit);
    type_text(&mut form, "date, amount, vat");
    form.act(Action::NextPart);
    press(&mut form, KeyCode::Char('w'));
    form.act(Action::Down);
    type_text(&mut form, "{\"rows\" 3}");
    form.act(Action::Down);
    form.paste("a note of a person\nin two lines\n");
    form.act(Action::Submit);
    press(&mut form, KeyCode::Char('y'));
    assert_eq!(form.act(Action::Submit), FormOutcome::After);
    insta::assert_snapshot!("form-filled", screen_text(&mut form, 60, 14, true, false).0);
    let why = "not valid JSON: expected `:`, column 9".to_owned();
    assert_eq!(form.values(), Err(vec![Problem { field: "limits".to_owned(), why }]));
    assert!(form.focus_on("limits"));
    assert_eq!(form.act(Action::Clear), FormOutcome::Changed);
    let values = json!({
        "threshold": 0.8, "columns": ["date", "amount", "vat"], "level": "warning",
        "note": "a note of a person\nin two lines", "strict": true,
    });
    assert_eq!(form.values().map(Value::Object), Ok(values));
}

#[test]
fn a_long_text_shows_its_beginning_and_marks_hidden_rows() {
    let fields = ["amount", "to"].map(|name| (name.to_owned(), field(FieldType::String)));
    let to: String = (1..=9).map(|row| format!("row {row}\n")).collect();
    let values = json!({ "amount": "5", "to": format!("mallory\n{to}alice") });
    let mut form = Form::new(&fields.into(), values.as_object().unwrap());
    form.focus_on("amount");
    let (screen, _) = screen_text(&mut form, 60, 14, false, false);
    let row = |text: &str| screen.lines().find(|line| line.contains(text)).unwrap_or_default().to_owned();
    assert!(screen.contains("mallory") && !screen.contains("alice"), "{screen}");
    assert!(row("row 5").contains('▼') && !screen.contains('▲'), "{screen}");
    form.focus_on("to");
    let (screen, cursor) = screen_text(&mut form, 60, 14, false, false);
    let row = |text: &str| screen.lines().find(|line| line.contains(text)).unwrap_or_default().to_owned();
    assert!(!screen.contains("mallory") && screen.contains("alice"), "{screen}");
    assert!(row("row 5").contains('▲') && !screen.contains('▼'), "{screen}");
    assert!(cursor.is_some());
    form.focus_on("amount");
    assert!(screen_text(&mut form, 60, 14, false, false).0.contains("mallory"));
}

#[test]
fn fields_have_the_order_of_a_list() {
    let form = Form::new(&fields(), &Map::new()).in_order(&["strict", "note"]);
    let names: Vec<&str> = form.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names[names.len() - 2..], ["strict", "note"]);
}

#[test]
fn invalid_values_are_reported_at_their_field() {
    let mut form = Form::new(&fields(), &Map::new());
    assert!(
        !screen_text(&mut form, 60, 14, true, false).0.contains("is required"),
        "the field was not visited yet"
    );
    assert!(!form.check(), "submitting reports what is missing");
    let (screen, cursor) = screen_text(&mut form, 60, 14, true, false);
    assert!(screen.contains("is required"), "{screen}");
    assert_eq!(cursor.map(|at| at.y), Some(0));
    type_text(&mut form, "0,8");
    assert!(screen_text(&mut form, 60, 14, true, false).0.contains("use a decimal point, not a comma"));
    press(&mut form, KeyCode::Backspace);
    press(&mut form, KeyCode::Backspace);
    assert!(screen_text(&mut form, 60, 14, true, false).0.contains("number ✓") && form.check());
}

#[test]
fn core_errors_stay_until_the_value_changes() {
    let mut form = Form::new(&fields(), &Map::new());
    let foreign = form.remark(&[
        ("threshold".to_owned(), "must be below 1".to_owned()),
        ("target".to_owned(), "holds no rows".to_owned()),
    ]);
    assert_eq!(foreign, [("target".to_owned(), "holds no rows".to_owned())]);
    assert!(screen_text(&mut form, 60, 14, true, false).0.contains("must be below 1"));
    type_text(&mut form, "0");
    assert!(!screen_text(&mut form, 60, 14, true, false).0.contains("must be below 1"));
}

#[test]
fn choices_cycle_by_arrows_and_letters() {
    let mut form = Form::new(&fields(), &Map::new());
    form.focus_on("strict");
    assert_eq!(form.so_far().get("strict"), None, "the default is the contract's to fill in");
    press(&mut form, KeyCode::Char(' '));
    assert_eq!(form.so_far()["strict"], json!(true));
    press(&mut form, KeyCode::Backspace);
    assert_eq!(form.so_far().get("strict"), None);
    form.focus_on("level");
    press(&mut form, KeyCode::Left);
    assert_eq!(form.so_far()["level"], json!("error"));
    press(&mut form, KeyCode::Right);
    press(&mut form, KeyCode::Char('e'));
    assert_eq!(form.so_far()["level"], json!("error"));
}

#[test]
fn form_opened_with_values_marks_corrections() {
    let values = json!({"threshold": 2, "columns": ["a", "b, c"], "level": "info", "unknown": 1});
    let mut form = Form::new(&fields(), values.as_object().unwrap());
    assert!(!form.changed() && form.changes().is_empty());
    assert_eq!(form.so_far().len(), 3);
    form.focus_on("threshold");
    press(&mut form, KeyCode::Backspace);
    type_text(&mut form, "0.5");
    form.focus_on("level");
    press(&mut form, KeyCode::Delete);
    assert_eq!(Value::Object(form.changes()), json!({"threshold": 0.5, "level": null}));
}

#[test]
fn focused_field_stays_visible_in_a_small_area() {
    let mut form = Form::new(&fields(), &Map::new());
    insta::assert_snapshot!("form-small", screen_text(&mut form, 38, 3, false, true).0);
    form.last();
    let (screen, cursor) = screen_text(&mut form, 38, 3, false, true);
    assert!(screen.contains("strict") && !screen.contains("thre"), "{screen}");
    assert_eq!(cursor, None, "a choice has no cursor");
    assert_eq!(form.act(Action::PageUp), FormOutcome::Stayed);
    assert!(screen_text(&mut form, 38, 3, false, true).0.contains("thre"));
    assert_eq!(form.act(Action::PreviousPart), FormOutcome::Before);
}

#[test]
fn clicks_select_fields_choices_and_text_positions() {
    let mut form = Form::new(&fields(), &Map::new());
    type_text(&mut form, "123");
    let (screen, _) = screen_text(&mut form, 60, 14, true, false);
    let row = screen.lines().position(|line| line.contains("warning")).unwrap();
    let column = screen.lines().nth(row).unwrap().split("warning").next().unwrap().chars().count();
    assert_eq!(form.click(Position::new(column as u16, row as u16)), Some(true));
    assert_eq!((form.focused(), &form.so_far()["level"]), (Some("level"), &json!("warning")));
    assert_eq!(form.click(Position::new(3, 0)), Some(false), "a label goes to its field");
    assert_eq!(form.focused(), Some("threshold"));
    assert_eq!(form.click(Position::new(70, 0)), None);
}
