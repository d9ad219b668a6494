//! Setting of text in columns.

/// Text of a dump is not trusted with the terminal: control characters become `?`.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect::<String>().trim().to_owned()
}

/// Breaks a line at blanks; lines after the first are indented by `hang`. Words that are too long are cut.
pub(crate) fn wrap(text: &str, width: usize, hang: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut columns = 0;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let mut chars: Vec<char> = word.chars().collect();
        if columns > hang && columns + 1 + chars.len() > width {
            lines.push(std::mem::take(&mut line));
            line.push_str(&" ".repeat(hang));
            columns = hang;
        }
        if !line.trim_start().is_empty() {
            line.push(' ');
            columns += 1;
        }
        while columns + chars.len() > width && width > hang + 1 {
            let fits = width - columns;
            line.extend(chars.drain(..fits.min(chars.len())));
            lines.push(std::mem::take(&mut line));
            line.push_str(&" ".repeat(hang));
            columns = hang;
        }
        columns += chars.len();
        line.extend(chars);
    }
    lines.push(line);
    lines
}

/// Breaks text into so many lines at most. What does not fit is left out in the middle, at blanks: of a command line both
/// the program and its last arguments matter.
pub(crate) fn elide(text: &str, width: usize, lines: usize) -> Vec<String> {
    let whole = wrap(text, width, 3);
    if whole.len() <= lines {
        return whole;
    }
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    // As many of the last words as fill half of the lines, and then as many of the first as still fit.
    let columns = |words: &[&str]| words.iter().map(|word| word.chars().count() + 1).sum::<usize>();
    let half = width * lines / 2;
    let end =
        (1..words.len()).take_while(|&end| columns(&words[words.len() - end..]) < half).last().unwrap_or(0);
    let set = |start: usize| {
        let kept = [&words[..start], &["…"], &words[words.len() - end..]].concat().join(" ");
        Some(wrap(&kept, width, 3)).filter(|set| set.len() <= lines)
    };
    let least = usize::from(end == 0);
    // What is wider than the lines is not tried: a text may have any number of words.
    let fits = |&start: &usize| columns(&words[..start]) < width * lines;
    let most = (least..words.len() - end).take_while(fits).last().unwrap_or(least);
    (least..=most).rev().find_map(set).unwrap_or_else(|| {
        let mut cut = whole;
        cut.truncate(lines);
        if let Some(last) = cut.last_mut() {
            mark_cut(last, width, " …");
        }
        cut
    })
}

/// Appends a mark that says that more follows; what does not fit beside it gives way, a word at a time.
pub(crate) fn mark_cut(line: &mut String, width: usize, mark: &str) {
    let indent = line.len() - line.trim_start().len();
    while line.chars().count() + mark.chars().count() > width && line.len() > indent {
        match line.rfind(' ').filter(|at| *at > indent) {
            Some(at) => line.truncate(at),
            None => drop(line.pop()),
        }
    }
    line.push_str(mark);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_fits_beside_what_is_left() {
        let cut = |text: &str, width| {
            let mut line = text.to_owned();
            mark_cut(&mut line, width, " … (-v)");
            line
        };
        assert_eq!(cut("  one two three", 30), "  one two three … (-v)");
        assert_eq!(cut("  one two three", 16), "  one two … (-v)");
        assert_eq!(cut("  onetwothree", 14), "  onetw … (-v)");
    }

    #[test]
    fn both_ends_of_a_long_line_are_kept() {
        let words: Vec<String> = (0..60).map(|n| format!("--option={n}")).collect();
        let lines = elide(&format!("program {}", words.join(" ")), 60, 2);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("program --option=0"), "{lines:?}");
        assert!(lines[1].ends_with("--option=59") && lines.concat().contains('…'), "{lines:?}");
        assert_eq!(elide("short", 60, 2), ["short"]);
    }

    /// Setting takes time in proportion to the text.
    #[test]
    fn any_number_of_words_is_set() {
        let lines = elide(&"word ".repeat(1 << 20), 100, 2);
        assert!(lines.len() == 2 && lines.concat().contains('…'), "{lines:?}");
    }

    #[test]
    fn one_word_that_is_too_long_is_cut() {
        let lines = elide(&"x".repeat(500), 60, 2);
        assert!(lines.len() == 2 && lines[1].ends_with('…'), "{lines:?}");
    }
}
