//! Draws the collision map: a matrix by cluster, groups of similar texts below it, and the pair under the cursor.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::collisions::Map;
use crate::pane::Draw;
use crate::theme::{BarStyle, Role};
use crate::widgets::format::plain_score;
use crate::widgets::{
    BorderJunction, Painter, RichLine, Seg, Title, cells, count, counted, cut_end, cut_line, divider, shown,
    wrap,
};
use skills_api::CollisionReport;
use skills_discovery::{
    AdviceKind, Collision, GroupKind, MAX_CLUSTER, PairAdvice, PairReport, PairSide, ProbedClause,
};
use skills_skill::SkillId;

/// Below this width the pair is under the matrix.
const FOLD: u16 = 100;
/// Width of a column, in cells.
const CELL: u16 = 2;
/// Width of a row's letter and the space after it, after the gutter, in cells.
const LETTER: u16 = 2;
/// Minimum width of a name, in cells.
const MIN_NAME: u16 = 10;
/// Minimum width of the pair if names in the matrix need more, in cells.
const MIN_PAIR: u16 = 46;
/// Maximum number of rows of the list of groups.
const MAX_GROUPS: u16 = 5;

pub(super) fn draw(map: &mut Map, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    map.cells.clear();
    map.pair_area = Rect::ZERO;
    let is_folded = area.width < FOLD;
    let left_width = if is_folded {
        area.width
    } else {
        let share = (u32::from(area.width) * 62 / 120) as u16;
        let share = share.max(map_width(map).min(area.width.saturating_sub(MIN_PAIR)));
        share.saturating_add_signed(cx.split).clamp(40, area.width.saturating_sub(40))
    };
    let height = if is_folded { area.height / 2 + 1 } else { area.height };
    let left = Rect { width: left_width, height, ..area };
    draw_matrix_part(map, left, buf, cx, !is_folded);
    // The cursor's cell is known once the clusters are placed.
    let request = map.request_missing();
    map.wanted.extend(request);
    if is_folded {
        let below = Rect { y: area.y + height, height: area.height.saturating_sub(height), ..area };
        draw_pair(map, below, buf, cx);
        return;
    }
    let right = Rect { x: area.x + left_width + 1, width: area.width.saturating_sub(left_width + 1), ..area };
    draw_pair(map, right, buf, cx);
    let joints = [(area.y, BorderJunction::Top { heavy: cx.focused })];
    divider(&mut Painter::new(buf, cx), Rect { x: area.x + left_width, width: 1, ..area }, &joints);
}

/// Returns the width of a matrix with untruncated names; 0 if clusters are listed.
fn map_width(map: &Map) -> u16 {
    let Some(report) = map.complete() else { return 0 };
    let zoomed = map.zoomed.and_then(|at| report.map.clusters.get(at));
    let clusters = zoomed.map_or(report.map.clusters.as_slice(), std::slice::from_ref);
    let skills: Vec<&SkillId> = clusters.iter().flat_map(|cluster| &cluster.skills).collect();
    if skills.len() > MAX_CLUSTER {
        return 0;
    }
    let longest = skills.iter().map(|id| cells(&shown(id.as_str()))).max().unwrap_or(0);
    2 + LETTER + longest + CELL * skills.len() as u16 + clusters.len().saturating_sub(1) as u16 + 2
}

fn draw_matrix_part(map: &mut Map, area: Rect, buf: &mut Buffer, cx: &Draw<'_>, with_groups: bool) {
    let focused = cx.focused && !map.in_pair;
    let report = map.complete().cloned();
    let note = report.as_ref().map_or_else(String::new, |report| {
        let clustered: usize = report.map.clusters.iter().map(|cluster| cluster.skills.len()).sum();
        format!(
            "{} of {} skills in {}",
            count(clustered),
            count(report.skills),
            counted(report.map.clusters.len(), "cluster")
        )
    });
    Title::of("Skills", focused).note(note).draw(&mut Painter::new(buf, cx), area.x, area.y, area.width);
    let body = Rect { y: area.y + 2, height: area.height.saturating_sub(2), ..area };
    let groups =
        report.as_ref().filter(|_| with_groups).map_or(0, |report| groups_height(report, body.height));
    let matrix = Rect { height: body.height.saturating_sub(groups), ..body };
    if let Some(report) = &report {
        place_clusters(map, report, matrix);
    }
    draw_map_tabs(map, Rect { y: area.y + 1, height: 1, ..area }, buf, cx);
    let mut painter = Painter::new(buf, cx);
    let Some(report) = report else {
        draw_map_progress(map, body, &mut painter);
        return;
    };
    if report.map.clusters.is_empty() {
        let text = "no skill loses requests to another skill";
        painter.put(body.x + 2, body.y + 1, painter.glyphs.ok, Role::Success, 1);
        painter.put(body.x + 4, body.y + 1, text, Role::Text, body.width.saturating_sub(5));
    }
    if map.in_sight.is_empty() {
        draw_clusters(map, &report, matrix, &mut painter, focused);
    } else {
        draw_matrix(map, &report, matrix, &mut painter, focused);
    }
    if groups > 0 {
        draw_groups(&report, Rect { y: matrix.bottom(), height: groups, ..body }, &mut painter);
    }
}

fn draw_map_tabs(map: &mut Map, row: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    let severe = map.complete().map_or(0, |report| report.severe);
    let mut painter = Painter::new(buf, cx);
    let end = painter.put(row.x + 2, row.y, "List", Role::Muted, row.width.saturating_sub(2));
    let available = row.right().saturating_sub(end + 3);
    let end = painter.put_plus(end + 3, row.y, "Collisions", Role::Strong, Modifier::UNDERLINED, available);
    if severe > 0 {
        painter.put(end + 1, row.y, &count(severe), Role::Warning, row.right().saturating_sub(end + 1));
    }
    if !map.in_sight.is_empty() && row.width >= 50 {
        painter.right(row.right().saturating_sub(1), row.y, "row loses to column", Role::Muted);
    }
}

fn draw_map_progress(map: &Map, area: Rect, painter: &mut Painter<'_>) {
    let width = area.width.saturating_sub(4);
    let text = match &map.report {
        Some(Err(error)) => RichLine::of(shown(&error.message), Role::Danger),
        Some(Ok(report)) => RichLine::of(
            format!("ranking the requests of {} of {} skills", count(report.done), count(report.skills)),
            Role::Muted,
        ),
        None => RichLine::of("ranking the requests made from every description", Role::Muted),
    };
    painter.line(area.x + 2, area.y + 1, &cut_line(&text, width, painter.glyphs.ellipsis), width);
    if let Some(Ok(report)) = &map.report
        && report.skills > 0
    {
        let full = (report.done * usize::from(width) / report.skills).min(usize::from(width)) as u16;
        painter.run(area.x + 2, area.y + 2, painter.glyphs.heavy, full, Role::Focus);
        painter.run(area.x + 2 + full, area.y + 2, painter.glyphs.rule, width - full, Role::Rule);
    }
}

/// Decides what is visible: the zoomed cluster, all of them if they fit, otherwise a list.
fn place_clusters(map: &mut Map, report: &CollisionReport, area: Rect) {
    let clusters = &report.map.clusters;
    map.zoomed = map.zoomed.filter(|at| *at < clusters.len());
    map.in_sight = if let Some(at) = map.zoomed {
        vec![at]
    } else {
        let skills: usize = clusters.iter().map(|cluster| cluster.skills.len()).sum();
        let gaps = clusters.len().saturating_sub(1);
        let width = 2 + LETTER + MIN_NAME + CELL * skills as u16 + gaps as u16 + 2;
        let height = 2 + skills + gaps + 2;
        let fits = skills <= MAX_CLUSTER && width <= area.width && height <= usize::from(area.height);
        if fits { (0..clusters.len()).collect() } else { Vec::new() }
    };
    let count = map.skills().len();
    if count > 0 {
        (map.row, map.column) = (map.row.min(count - 1), map.column.min(count - 1));
    } else {
        map.row = map.row.min(clusters.len().saturating_sub(1));
    }
}

/// Draws clusters that do not fit as a matrix: one line each.
fn draw_clusters(
    map: &mut Map,
    report: &CollisionReport,
    area: Rect,
    painter: &mut Painter<'_>,
    focused: bool,
) {
    /// Maximum width of a name, in cells.
    const MAX_NAME: u16 = 18;
    /// Widths of the numbers of skills and of collisions, each with the space before it, in cells.
    const SKILLS: u16 = 11;
    const COLLISIONS: u16 = 16;
    let name_width = area.width.saturating_sub(2 + SKILLS + COLLISIONS + 1).clamp(MIN_NAME, MAX_NAME);
    let skills_end = area.x + 2 + name_width + SKILLS;
    let collisions_end = skills_end + COLLISIONS;
    let clusters = &report.map.clusters;
    let height = usize::from(area.height);
    map.list.cursor = map.row;
    map.list.follow(clusters.len(), height);
    for (place, (at, cluster)) in clusters.iter().enumerate().skip(map.list.offset).take(height).enumerate() {
        let row = Rect { y: area.y + place as u16, height: 1, ..area };
        map.cells.push((row, at, 0));
        if at == map.row {
            painter.select(row, focused);
        }
        let severe = report.map.severe().filter(|found| {
            cluster.skills.contains(&found.skill_id) && cluster.skills.contains(&found.rival)
        });
        let severe = severe.count();
        let name = shown(&cluster.label);
        let plus = if at == map.row { Modifier::BOLD } else { Modifier::empty() };
        painter.put_plus(
            row.x + 2,
            row.y,
            &cut_end(&name, name_width, painter.glyphs.ellipsis),
            Role::Text,
            plus,
            name_width,
        );
        painter.right(skills_end, row.y, &counted(cluster.skills.len(), "skill"), Role::Muted);
        let role = if severe > 0 { Role::Warning } else { Role::Muted };
        painter.right(collisions_end, row.y, &counted(severe, "collision"), role);
        let rest = cluster.skills.iter().map(|id| shown(id.as_str())).collect::<Vec<_>>().join(", ");
        let available = area.right().saturating_sub(collisions_end + 3);
        painter.put_cut(collisions_end + 2, row.y, &rest, Role::Muted, available);
    }
}

fn draw_matrix(
    map: &mut Map,
    report: &CollisionReport,
    area: Rect,
    painter: &mut Painter<'_>,
    focused: bool,
) {
    let clusters: Vec<_> = map.in_sight.iter().filter_map(|at| report.map.clusters.get(*at)).collect();
    let skills: Vec<&SkillId> = clusters.iter().flat_map(|cluster| &cluster.skills).collect();
    let cells_width = CELL * skills.len() as u16 + clusters.len().saturating_sub(1) as u16;
    let longest = skills.iter().map(|id| cells(&shown(id.as_str()))).max().unwrap_or(0);
    let available = area.width.saturating_sub(2 + LETTER + cells_width + 2);
    let name_width = longest.min(available);
    let x = area.x + 2 + LETTER + name_width + 1;
    let columns: Vec<u16> = places(&clusters, CELL).into_iter().map(|at| x + at).collect();
    let rows: Vec<u16> = places(&clusters, 1).into_iter().map(|at| area.y + 2 + at).collect();
    let letter = |at: usize| char::from(b'a' + (at % 26) as u8).to_string();
    let (row_at, column_at) = (map.row, map.column);
    let mut first = 0;
    for cluster in &clusters {
        let start = columns.get(first).copied().unwrap_or(x);
        let width = (CELL * cluster.skills.len() as u16).max(3);
        painter.put_cut(start, area.y, &shown(&cluster.label), Role::Muted, width);
        first += cluster.skills.len();
    }
    for (at, column) in columns.iter().enumerate() {
        let is_here = at == column_at;
        let (role, plus) =
            if is_here { (Role::Strong, Modifier::BOLD) } else { (Role::Muted, Modifier::empty()) };
        painter.put_plus(*column, area.y + 1, &letter(at), role, plus, 1);
        if is_here && let (Some(top), Some(bottom)) = (rows.first(), rows.last()) {
            let height = (bottom + 1).min(area.bottom()).saturating_sub(*top);
            painter.band(Rect { x: *column, y: *top, width: CELL, height }, Role::SelectionWeak);
        }
    }
    for (at, (skill, y)) in skills.iter().zip(&rows).enumerate() {
        if *y >= area.bottom() {
            break;
        }
        let row = Rect { y: *y, height: 1, ..area };
        let plus = if at == row_at { Modifier::BOLD } else { Modifier::empty() };
        if at == row_at {
            painter.select(row, focused);
        }
        painter.put(area.x + 2, *y, &letter(at), Role::Muted, 1);
        let name = shown(skill.as_str());
        painter.put_plus(
            area.x + 2 + LETTER,
            *y,
            &cut_end(&name, name_width, painter.glyphs.ellipsis),
            Role::Text,
            plus,
            name_width,
        );
        for (to, (rival, column)) in skills.iter().zip(&columns).enumerate() {
            let cell = Rect { x: *column, y: *y, width: CELL, height: 1 };
            map.cells.push((cell, at, to));
            let lost = report.map.collision(skill, rival);
            let same = clusters.iter().any(|c| c.skills.contains(skill) && c.skills.contains(rival));
            let (sign, role) = match lost {
                _ if at == to => (if painter.glyphs.ascii { "\\" } else { "╲" }.to_owned(), Role::Faint),
                Some(lost) => shaded_cell(lost, painter),
                None if same => (painter.glyphs.dot.to_owned(), Role::Faint),
                None => continue,
            };
            painter.put(*column, *y, &sign, role, CELL);
            if (at, to) == (row_at, column_at) && at != to {
                painter.buf.set_style(cell, painter.theme.style(Role::Cursor));
                painter.put(*column, *y, &sign, role, CELL);
            }
        }
        // After the next cell, which begins where this one ends.
        if at == row_at
            && at != column_at
            && let Some(column) = columns.get(column_at)
        {
            painter.put(column.saturating_sub(1), *y, "[", Role::Strong, 1);
            painter.put(column + CELL, *y, "]", Role::Strong, 1);
        }
    }
    let legend = rows.last().map_or(area.y, |last| last + 2);
    if legend < area.bottom() {
        draw_legend(Rect { y: legend, height: 1, ..area }, painter);
    }
}

fn draw_pair(map: &mut Map, area: Rect, buf: &mut Buffer, cx: &Draw<'_>) {
    if area.height < 2 {
        return;
    }
    map.pair_area = area;
    let focused = cx.focused && map.in_pair;
    let mut painter = Painter::new(buf, cx);
    let Some((row, column)) = map.pair() else {
        Title::of("Pair", focused).draw(&mut painter, area.x, area.y, area.width);
        let text = match map.complete() {
            Some(_) if map.in_sight.is_empty() => "zoom into a cluster, then select a cell",
            Some(_) => "select a cell: its row loses requests to its column",
            None => "",
        };
        painter.put(area.x + 2, area.y + 2, text, Role::Muted, area.width.saturating_sub(3));
        return;
    };
    let mut title = Title::of(shown(row.as_str()), focused);
    title.name.segs[0].plus = Modifier::BOLD;
    title.name.segs.push(Seg::new(" and ", Role::Muted));
    title.name.segs.push(Seg::new(shown(column.as_str()), Role::Text).with(Modifier::BOLD));
    title.draw(&mut painter, area.x, area.y, area.width);
    let width = area.width.saturating_sub(4);
    let lines = match map.pairs.get(&(row.clone(), column.clone())) {
        Some(Ok(report)) => pair_lines(report, width, &painter),
        Some(Err(error)) => vec![RichLine::of(shown(&error.message), Role::Danger)],
        None if map.is_compared(&(row.clone(), column.clone())) => {
            vec![RichLine::of("comparing the two skills", Role::Muted)]
        }
        None => vec![RichLine::of("no requests are lost between the two skills", Role::Muted)],
    };
    let height = usize::from(area.height - 2);
    map.text.height = height;
    map.text.offset = map.text.offset.min(lines.len().saturating_sub(height));
    for (line, y) in lines.iter().skip(map.text.offset).take(height).zip(area.y + 2..) {
        painter.line(area.x + 2, y, &cut_line(line, width, painter.glyphs.ellipsis), width);
    }
}

/// Returns the positions of the skills of some clusters, with a gap between clusters.
fn places(clusters: &[&skills_discovery::Cluster], size: u16) -> Vec<u16> {
    let mut out = Vec::new();
    let mut at = 0;
    for cluster in clusters {
        for _ in &cluster.skills {
            out.push(at);
            at += size;
        }
        at += 1;
    }
    out
}

/// Legend of the shares: below 5, 10 and 20 %, and 20 % or more.
const STEPS: [(&str, Role); 4] =
    [("1-4 %", Role::Level0), ("5-9", Role::Level1), ("10-19", Role::Level2), ("20 or more", Role::Warning)];

fn step(collision: &Collision) -> usize {
    match collision.share {
        share if share < 0.05 => 0,
        share if share < 0.10 => 1,
        _ if !collision.is_severe() => 2,
        _ => 3,
    }
}

/// Returns a cell by weight; without colors by shade, in ASCII by number.
fn shaded_cell(collision: &Collision, painter: &Painter<'_>) -> (String, Role) {
    let step = step(collision);
    (sign(step, painter).repeat(usize::from(CELL)), STEPS[step].1)
}

fn sign(step: usize, painter: &Painter<'_>) -> &'static str {
    if painter.glyphs.ascii || painter.theme.bars == BarStyle::Letters {
        ["1", "2", "3", "4"][step]
    } else if painter.theme.bars == BarStyle::Shades {
        ["░", "▒", "▓", "█"][step]
    } else {
        "▆"
    }
}

fn draw_legend(row: Rect, painter: &mut Painter<'_>) {
    let mut x = painter.put(row.x + 2, row.y, "requests lost", Role::Muted, row.width.saturating_sub(3)) + 2;
    for (at, (label, role)) in STEPS.iter().enumerate() {
        if x + 4 + cells(label) > row.right() {
            return;
        }
        x = painter.put(x, row.y, &sign(at, painter).repeat(usize::from(CELL)), *role, CELL) + 1;
        x = painter.put(x, row.y, label, Role::Muted, row.right().saturating_sub(x)) + 2;
    }
}

fn groups_height(report: &CollisionReport, height: u16) -> u16 {
    if report.map.groups.is_empty() || height < 20 {
        return 0;
    }
    (report.map.groups.len() as u16).min(MAX_GROUPS) + 1
}

fn draw_groups(report: &CollisionReport, area: Rect, painter: &mut Painter<'_>) {
    let all = report.map.groups.len();
    let listed = all.min(usize::from(area.height - 1));
    let omitted = if listed < all { format!("{listed} of {}: ", count(all)) } else { String::new() };
    Title::of("Groups", false)
        .note(format!("{omitted}the same or nearly the same text"))
        .draw(painter, area.x, area.y, area.width);
    // The largest of each kind first, so that every kind is visible.
    let mut groups: Vec<_> = report.map.groups.iter().collect();
    let nth = |group: &&skills_discovery::SimilarGroup| {
        report.map.groups.iter().filter(|other| other.kind == group.kind).position(|other| other == *group)
    };
    groups.sort_by_key(|group| (nth(group), group.kind as u8));
    for (group, y) in groups.iter().take(listed).zip(area.y + 1..) {
        painter.put(area.x + 2, y, &group.kind.to_string(), Role::Text, 10);
        painter.right(area.x + 22, y, &counted(group.skills.len(), "skill"), Role::Strong);
        let names = group.skills.iter().map(|id| shown(id.as_str())).collect::<Vec<_>>();
        let text = match group.kind {
            GroupKind::Template => format!("“{}”", shown(&group.text)),
            GroupKind::Identical | GroupKind::Shadowed => names.join(" = "),
        };
        let available = area.width.saturating_sub(26);
        painter.put_cut(area.x + 24, y, &text, Role::Muted, available);
    }
}

/// Returns a bar of kept and lost requests.
fn bar(won: usize, lost: usize, made: usize, width: usize, painter: &Painter<'_>) -> [Seg; 2] {
    let part = |n: usize| (n * width).div_ceil(made.max(1)).min(width);
    let lost_cells = part(lost);
    let kept_cells = (won * width / made.max(1)).min(width - lost_cells);
    let (kept_sign, lost_sign) =
        if painter.glyphs.ascii { ("#", "-") } else { (sign(1, painter), sign(3, painter)) };
    [
        Seg::new(kept_sign.repeat(kept_cells), Role::Level1),
        Seg::new(lost_sign.repeat(lost_cells), Role::Warning),
    ]
}

/// Returns the lines of a pair, from top to bottom.
fn pair_lines(report: &PairReport, width: u16, painter: &Painter<'_>) -> Vec<RichLine> {
    // The name is truncated before the figures are.
    let name_width = width.saturating_sub(2 + 5 + 6 + 6).clamp(8, 24);
    let label_width = usize::from(name_width) + 2;
    let mut out = vec![RichLine::of(
        format!("{:<label_width$}{:>5}{:>6}{:>6}", "probe requests", "total", "won", "lost"),
        Role::Muted,
    )];
    let bar_width = usize::from(width).saturating_sub(45).min(18);
    for (letter, side) in [("A", &report.a), ("B", &report.b)] {
        let name = shown(side.skill_id.as_str());
        let name = cut_end(&name, name_width - 1, painter.glyphs.ellipsis).into_owned();
        let padding = " ".repeat(usize::from(name_width.saturating_sub(cells(&name))));
        let lost_role = if side.lost > 0 { Role::Warning } else { Role::Text };
        let mut segs = vec![
            Seg::new(format!("{letter} "), Role::Muted),
            Seg::new(format!("{name}{padding}"), Role::Text).with(Modifier::BOLD),
            Seg::new(format!("{:>5}", side.made), Role::Muted),
            Seg::new(format!("{:>6}", side.won), Role::Text),
            Seg::new(format!("{:>6}", side.lost), lost_role),
            Seg::new("  ", Role::Text),
        ];
        segs.extend(bar(side.won, side.lost, side.made, bar_width, painter));
        out.push(RichLine::from_segs(segs));
    }
    if !report.golden.is_empty() {
        let won = |side: &PairSide| report.golden.iter().filter(|duel| duel.won == side.skill_id).count();
        out.push(RichLine::from_segs(vec![
            Seg::new(format!("{:<label_width$}{:>5}", "golden queries", report.golden.len()), Role::Muted),
            Seg::new(format!("   A wins {}, B wins {}", won(&report.a), won(&report.b)), Role::Text),
        ]));
    }
    let similarity = plain_score(report.similarity, painter.glyphs);
    out.push(RichLine::of(
        format!("{:<label_width$}{similarity:>5}  not used in advice", "similarity"),
        Role::Muted,
    ));
    heading(&mut out, "Clauses", "requests won by their own skill", width, painter);
    for (letter, side) in [("A", &report.a), ("B", &report.b)] {
        out.extend(side.clauses.iter().map(|clause| clause_line(letter, clause, width, painter)));
    }
    heading(&mut out, "Distinguishing terms", "", width, painter);
    for (letter, side) in [("A", &report.a), ("B", &report.b)] {
        separating(&mut out, letter, side, width);
    }
    if report.shared > 0 {
        let role = if report.shared_lost > 0 { Role::Warning } else { Role::Muted };
        let text = format!(
            "requests without a distinguishing term: {} of {} lost",
            report.shared_lost, report.shared
        );
        let lines = wrap(&[Seg::new(text, Role::Text)], width.saturating_sub(2)).into_iter().enumerate();
        out.extend(lines.map(|(at, mut line)| {
            let sign = if at == 0 { painter.glyphs.warn } else { " " };
            line.insert(0, Seg::new(format!("{sign} "), role));
            RichLine::from_segs(line)
        }));
    }
    heading(&mut out, "Advice", "measured, nothing written", width, painter);
    let columns = AdviceColumns::of(width);
    out.push(columns.head());
    out.extend(report.advice.iter().map(|advice| columns.line(advice, painter)));
    match report.advice.iter().find(|advice| advice.is_best) {
        Some(best) => advised_texts(&mut out, best, width),
        None => out.push(RichLine::of("no effective change found", Role::Muted)),
    }
    out
}

fn heading(out: &mut Vec<RichLine>, name: &str, note: &str, width: u16, painter: &Painter<'_>) {
    out.push(RichLine::default());
    let rule = width.saturating_sub(cells(name) + cells(note) + 2);
    out.push(RichLine::from_segs(vec![
        Seg::new(name, Role::Text).with(Modifier::BOLD),
        Seg::new(format!(" {} ", painter.glyphs.rule.repeat(usize::from(rule))), Role::Rule),
        Seg::new(note, Role::Muted),
    ]));
}

pub(super) fn clause_line(
    letter: &str,
    clause: &ProbedClause,
    width: u16,
    painter: &Painter<'_>,
) -> RichLine {
    let is_weak = clause.won * 2 < clause.made;
    let bar_width = 10;
    let available = width.saturating_sub(2 + 10 + bar_width + 2);
    let text = shown(&clause.clause);
    let text = cut_end(&text, available, painter.glyphs.ellipsis).into_owned();
    let padding = " ".repeat(usize::from(available.saturating_sub(cells(&text))));
    let plus = if is_weak { Modifier::BOLD } else { Modifier::empty() };
    let mut segs = vec![
        Seg::new(format!("{letter:<2}"), Role::Muted),
        Seg::new(text, Role::Text).with(plus),
        Seg::new(padding, Role::Text),
        Seg::new(format!("{:>3}", clause.won), if is_weak { Role::Warning } else { Role::Text }),
        Seg::new(format!(" of {:<2} ", clause.made), Role::Muted),
    ];
    segs.extend(bar(clause.won, clause.made - clause.won, clause.made, usize::from(bar_width), painter));
    RichLine::from_segs(segs)
}

fn separating(out: &mut Vec<RichLine>, letter: &str, side: &PairSide, width: u16) {
    if side.own_terms.is_empty() {
        out.push(RichLine::of(format!("{letter} has no unique term that wins a request"), Role::Muted));
        return;
    }
    let mut segs = vec![Seg::new(format!("only in {letter}: "), Role::Muted)];
    for (at, term) in side.own_terms.iter().enumerate() {
        if at > 0 {
            segs.push(Seg::new(", ", Role::Muted));
        }
        segs.push(Seg::new(shown(term), Role::MarkDescription));
    }
    segs.push(Seg::new(format!("; wins {} of {}", side.separable_kept, side.separable), Role::Muted));
    out.extend(wrap(&segs, width).into_iter().map(RichLine::from_segs));
}

/// Widths of the columns of the advice; narrower where the panel is.
struct AdviceColumns {
    label: usize,
    lost: usize,
    golden: usize,
    tokens: usize,
}

impl AdviceColumns {
    fn of(width: u16) -> Self {
        if width >= 52 {
            Self { label: 18, lost: 14, golden: 9, tokens: 9 }
        } else {
            Self { label: 16, lost: 9, golden: 7, tokens: 7 }
        }
    }

    fn head(&self) -> RichLine {
        let Self { label, lost, golden, tokens } = *self;
        let name = if lost > "lost requests".len() { "lost requests" } else { "lost" };
        RichLine::of(
            format!("  {:<label$}{name:>lost$}{:>golden$}{:>tokens$}", "", "golden", "tokens"),
            Role::Muted,
        )
    }

    fn line(&self, advice: &PairAdvice, painter: &Painter<'_>) -> RichLine {
        let label = match advice.kind {
            AdviceKind::AddExclusion => "add an exclusion",
            AdviceKind::Merge => "merge",
            AdviceKind::Split => "split",
        };
        let plus = if advice.is_best { Modifier::BOLD } else { Modifier::empty() };
        let mark = if advice.is_best { painter.glyphs.set } else { painter.glyphs.pending };
        let golden =
            advice.golden.map_or_else(|| painter.glyphs.dot.to_owned(), |change| format!("{change:+}"));
        let golden_role = match advice.golden {
            Some(change) if change > 0 => Role::Success,
            Some(change) if change < 0 => Role::Danger,
            _ => Role::Muted,
        };
        let lost = format!("{} to {}", advice.lost_before, advice.lost_after);
        RichLine::from_segs(vec![
            Seg::new(format!("{mark} "), Role::Text),
            Seg::new(format!("{label:<width$}", width = self.label), Role::Text).with(plus),
            Seg::new(format!("{lost:>width$}", width = self.lost), Role::Text).with(plus),
            Seg::new(format!("{golden:>width$}", width = self.golden), golden_role),
            Seg::new(format!("{:>+width$}", advice.tokens, width = self.tokens), Role::Muted),
        ])
    }
}

fn advised_texts(out: &mut Vec<RichLine>, advice: &PairAdvice, width: u16) {
    for text in &advice.texts {
        out.push(RichLine::default());
        let segs = [
            Seg::new(format!("{}  ", shown(text.skill_id.as_str())), Role::Muted),
            Seg::new(shown(&text.description), Role::DiffAdd),
        ];
        out.extend(wrap(&segs, width).into_iter().map(RichLine::from_segs));
    }
    if let Some(removed) = &advice.removed {
        out.push(RichLine::of(format!("removes {}", shown(removed.as_str())), Role::DiffDel));
    }
}
