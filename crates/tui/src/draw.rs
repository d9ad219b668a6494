//! Drawing: a title, the tabs, the lines of a pane, and a line at the bottom. Never: a colour beyond the sixteen that every terminal has.

use crate::app::{App, View};
use crate::lines::Lines;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use unwedge_view::browse::RowLook;

/// Rows above the lines of a pane.
pub(crate) const ROWS_ABOVE: u16 = 2;
/// Rows below them.
const ROWS_BELOW: u16 = 1;

/// How the screen may look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// With colours.
    pub colour: bool,
}

impl Theme {
    fn of(self, look: RowLook) -> Style {
        let coloured = |style: Style, colour: Color| if self.colour { style.fg(colour) } else { style };
        match look {
            RowLook::Plain => Style::new(),
            RowLook::Heading => coloured(Style::new().add_modifier(Modifier::BOLD), Color::Cyan),
            RowLook::Stop => coloured(Style::new().add_modifier(Modifier::BOLD), Color::Red),
            RowLook::Dim if self.colour => Style::new().fg(Color::DarkGray),
            RowLook::Dim => Style::new().add_modifier(Modifier::DIM),
            RowLook::Loss => coloured(Style::new(), Color::Yellow),
        }
    }
}

/// What a tab says where the screen has so many columns.
fn label(view: View, number: usize, columns: u16) -> String {
    let name = view.name();
    match columns {
        0..=47 => format!("{}{}", number + 1, name.get(..2).unwrap_or(name)),
        48..=71 => format!("{} {}", number + 1, name.get(..4).unwrap_or(name)),
        _ => format!("{} {name}", number + 1),
    }
}

/// The tabs with their first columns.
fn tabs(app: &App<'_>) -> Vec<(View, u16, String)> {
    let mut column = 0_u16;
    let place = |(number, view): (usize, View)| {
        let text = format!(" {} ", label(view, number, app.size.0));
        let at = column;
        column = column.saturating_add(u16::try_from(text.len()).unwrap_or(u16::MAX));
        (view, at, text)
    };
    app.tabs().enumerate().map(place).collect()
}

/// The tab at a cell.
pub(crate) fn tab_at(app: &App<'_>, column: u16, row: u16) -> Option<View> {
    if row != 1 {
        return None;
    }
    let inside =
        |(_, at, text): &&(View, u16, String)| (*at..at.saturating_add(text.len() as u16)).contains(&column);
    tabs(app).iter().find(inside).map(|(view, ..)| *view)
}

impl App<'_> {
    /// Draws the screen.
    pub fn draw(&mut self, frame: &mut Frame<'_>, theme: Theme) {
        let area = frame.area();
        self.size = (area.width, area.height);
        self.height = usize::from(area.height.saturating_sub(ROWS_ABOVE + ROWS_BELOW)).max(1);
        let height = self.height;
        self.current().settle(height);
        self.write(area, frame.buffer_mut(), theme);
        if let Some(prompt) = &self.prompt
            && area.height > 0
        {
            let columns = u16::try_from(prompt.text.chars().count() + 1).unwrap_or(u16::MAX);
            frame
                .set_cursor_position((area.x + columns.min(area.width.saturating_sub(1)), area.bottom() - 1));
        }
    }

    fn write(&mut self, area: Rect, buffer: &mut Buffer, theme: Theme) {
        if area.height < ROWS_ABOVE + ROWS_BELOW + 1 || area.width < 10 {
            if area.height > 0 {
                buffer.set_stringn(area.x, area.y, "too small", area.width.into(), Style::new());
            }
            return;
        }
        let width = usize::from(area.width);
        let title = format!("{:width$}", self.document.title());
        let reversed = Style::new().add_modifier(Modifier::REVERSED);
        buffer.set_stringn(area.x, area.y, title, width, reversed);
        for (view, at, text) in tabs(self) {
            let style = if view == self.view { reversed } else { Style::new() };
            if at < area.width {
                buffer.set_stringn(area.x + at, area.y + 1, text, usize::from(area.width - at), style);
            }
        }
        self.write_lines(area, buffer, theme);
        let status = self.status();
        let left = match (&self.prompt, &self.message) {
            (Some(prompt), _) => format!("{}{}", prompt.purpose.sign(), prompt.text),
            (None, Some(message)) => message.clone(),
            (None, None) => self.place(),
        };
        let row = area.bottom() - 1;
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let style = if self.message.is_some() || self.prompt.is_some() { bold } else { Style::new() };
        let room = width.saturating_sub(status.len() + 1);
        // Of what is typed, the end is seen.
        let skipped = match self.prompt {
            Some(_) => left.chars().count().saturating_sub(room.max(1)),
            None => 0,
        };
        let left: String = left.chars().skip(skipped).collect();
        buffer.set_stringn(area.x, row, left, room, style);
        let at = area.width.saturating_sub(u16::try_from(status.len()).unwrap_or(u16::MAX));
        buffer.set_stringn(area.x + at, row, &status, width, theme.of(RowLook::Dim));
    }

    fn write_lines(&mut self, area: Rect, buffer: &mut Buffer, theme: Theme) {
        let height = self.height;
        let pane = match &self.help {
            Some(help) => help,
            None => match self.state_of(self.view).panes.last() {
                Some(pane) => pane,
                None => return,
            },
        };
        let width = usize::from(area.width);
        for (row, line) in (0..height).zip(pane.top..pane.lines.len()) {
            let shown = pane.lines.row(line, &*self.document);
            let mut style = theme.of(shown.look);
            let mut text: String = shown.text.chars().skip(pane.left).take(width).collect();
            if line == pane.cursor {
                style = style.add_modifier(Modifier::REVERSED);
                let columns = text.chars().count();
                text.extend(std::iter::repeat_n(' ', width.saturating_sub(columns)));
            }
            let row = area.y + ROWS_ABOVE + u16::try_from(row).unwrap_or(u16::MAX);
            buffer.set_stringn(area.x, row, text, width, style);
        }
    }

    /// What is open.
    fn place(&self) -> String {
        if self.help.is_some() {
            return "keys; h or q closes".to_owned();
        }
        match self.state_of(self.view).panes.last().map(|pane| &pane.lines) {
            Some(Lines::Packets(packets)) => packets.title.clone(),
            Some(Lines::Contents(contents)) => {
                format!("{}, as {} (f)", contents.title, contents.format().name())
            }
            Some(Lines::Registers(registers)) if !registers.filter.is_empty() => {
                format!("&{}", registers.filter)
            }
            _ => "h: keys".to_owned(),
        }
    }

    /// Which line is selected, and how many there are.
    fn status(&self) -> String {
        let pane = match &self.help {
            Some(help) => Some(help),
            None => self.state_of(self.view).panes.last(),
        };
        let Some(pane) = pane else { return String::new() };
        format!("{}/{}", pane.cursor.saturating_add(1).min(pane.lines.len()), pane.lines.len())
    }
}
