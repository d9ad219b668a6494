//! What build scripts that read tables share, `unwedge-check`'s included.

/// Lines with their numbers, without comments and empty ones.
pub fn lines(source: &str) -> impl Iterator<Item = (usize, &str)> {
    source
        .lines()
        .enumerate()
        .map(|(n, line)| (n + 1, line.split('#').next().unwrap_or_default().trim_end()))
        .filter(|(_, line)| !line.trim().is_empty())
}

/// `snake_case` or `kebab-case` as the name of a variant.
pub fn camel(name: &str) -> String {
    let capital = |part: &str| {
        let mut chars = part.chars();
        chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect::<String>()
    };
    name.split(['_', '-']).map(capital).collect()
}
