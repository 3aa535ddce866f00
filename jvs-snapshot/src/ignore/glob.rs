//! A pattern of a file of rules, matched as git matches it: bytes, not text.
//!
//! What a pattern matches is a regular language, so all ways to match are followed at once,
//! byte by byte: no pattern, whoever wrote it, takes longer than its length times that of
//! the name.

/// One piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// This byte.
    Byte(u8),
    /// One byte of a set, which never has the slash.
    Class(Box<[bool; 256]>),
    /// Any bytes but slashes: `*`.
    Star,
    /// Any bytes: `**` at an end, or between slashes that are written otherwise.
    Anything,
    /// Nothing, or what comes next and ends with a slash: `**/` is this and then
    /// [`Piece::Directories`].
    Perhaps,
    /// Any bytes that end with a slash.
    Directories,
}

/// A pattern that was taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    /// It begins with these bytes.
    prefix: Vec<u8>,
    /// And goes on like this; nothing if it never matches.
    rest: Option<Vec<Piece>>,
}

impl Glob {
    /// Of a pattern that has a path to match if `of_path`, and a name otherwise.
    pub(super) fn new(pattern: &[u8], of_path: bool) -> Self {
        // As in git, what is before the first special byte is compared by itself, and what
        // comes after it is at the beginning of a pattern: `a**/b` is `a`, then `**/b`.
        let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let plain = pattern.iter().position(special).unwrap_or(pattern.len());
        Glob { prefix: pattern[..plain].to_vec(), rest: pieces(&pattern[plain..], of_path) }
    }

    pub(super) fn matches(&self, name: &[u8]) -> bool {
        let Some(rest) = &self.rest else { return false };
        let Some(name) = name.strip_prefix(self.prefix.as_slice()) else { return false };
        match rest.as_slice() {
            [] => name.is_empty(),
            // By far the most frequent patterns: `*`, and `*.o`.
            [Piece::Star, after @ ..]
                if after.iter().all(|piece| matches!(piece, Piece::Byte(_))) =>
            {
                ends_with(name, after)
            }
            pieces => follow(pieces, name),
        }
    }
}

/// Is it bytes without a slash, and then these?
fn ends_with(name: &[u8], pieces: &[Piece]) -> bool {
    let Some(start) = name.len().checked_sub(pieces.len()) else { return false };
    let (first, last) = name.split_at(start);
    !first.contains(&b'/')
        && last.iter().zip(pieces).all(|(byte, piece)| *piece == Piece::Byte(*byte))
}

/// Follows all ways at once: which pieces may come next.
fn follow(pieces: &[Piece], name: &[u8]) -> bool {
    let mut at = vec![false; pieces.len() + 1];
    let mut next = vec![false; pieces.len() + 1];
    at[0] = true;
    skip(pieces, &mut at);
    for &byte in name {
        next.fill(false);
        for (index, piece) in pieces.iter().enumerate().filter(|(index, _)| at[*index]) {
            match piece {
                Piece::Byte(expected) => next[index + 1] |= *expected == byte,
                Piece::Class(set) => next[index + 1] |= set[usize::from(byte)],
                Piece::Star => next[index] |= byte != b'/',
                Piece::Anything => next[index] = true,
                Piece::Perhaps => {}
                Piece::Directories => {
                    next[index] = true;
                    next[index + 1] |= byte == b'/';
                }
            }
        }
        std::mem::swap(&mut at, &mut next);
        skip(pieces, &mut at);
        if !at.contains(&true) {
            return false;
        }
    }
    at[pieces.len()]
}

/// What may be nothing may be passed.
fn skip(pieces: &[Piece], at: &mut [bool]) {
    for (index, piece) in pieces.iter().enumerate() {
        if !at[index] {
            continue;
        }
        match piece {
            Piece::Star | Piece::Anything => at[index + 1] = true,
            Piece::Perhaps => (at[index + 1], at[index + 2]) = (true, true),
            _ => {}
        }
    }
}

/// The pieces of a pattern; nothing if it never matches.
fn pieces(pattern: &[u8], of_path: bool) -> Option<Vec<Piece>> {
    let mut pieces = Vec::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'\\' => {
                let (&byte, after) = rest.split_first()?;
                pieces.push(Piece::Byte(byte));
                rest = after;
            }
            b'?' => pieces.push(class(|byte| byte != b'/')),
            b'[' => {
                let (set, after) = bracket(rest)?;
                pieces.push(set);
                rest = after;
            }
            b'*' => {
                let stars = rest.iter().take_while(|&&byte| byte == b'*').count();
                let begins = pattern.len() - rest.len() - 1;
                let after_slash = begins == 0 || pattern[begins - 1] == b'/';
                rest = &rest[stars..];
                let spans = stars > 0
                    && of_path
                    && after_slash
                    && (rest.is_empty() || rest[0] == b'/' || rest.starts_with(b"\\/"));
                match spans {
                    true if rest.first() == Some(&b'/') => {
                        rest = &rest[1..];
                        pieces.extend([Piece::Perhaps, Piece::Directories]);
                    }
                    true => pieces.push(Piece::Anything),
                    false => pieces.push(Piece::Star),
                }
            }
            byte => pieces.push(Piece::Byte(byte)),
        }
    }
    Some(pieces)
}

fn class(holds: impl Fn(u8) -> bool) -> Piece {
    let mut set = Box::new([false; 256]);
    for byte in 0..=u8::MAX {
        set[usize::from(byte)] = byte != b'/' && holds(byte);
    }
    Piece::Class(set)
}

fn take(rest: &mut &[u8]) -> Option<u8> {
    let (&first, after) = rest.split_first()?;
    *rest = after;
    Some(first)
}

/// What comes after `[`: the set, and what is behind its `]`; nothing if it has no end or
/// names a class that there is not.
fn bracket(mut rest: &[u8]) -> Option<(Piece, &[u8])> {
    let mut set = [false; 256];
    let negated = matches!(rest.first(), Some(b'!' | b'^'));
    if negated {
        rest = &rest[1..];
    }
    // The byte before, if a range may begin with it.
    let mut before: Option<u8> = None;
    // A `]` that comes first is a member.
    let mut is_first = true;
    loop {
        let byte = take(&mut rest)?;
        if byte == b']' && !is_first {
            break;
        }
        is_first = false;
        before = match (byte, before) {
            (b'\\', _) => {
                let byte = take(&mut rest)?;
                set[usize::from(byte)] = true;
                Some(byte)
            }
            (b'-', Some(from)) if !rest.is_empty() && rest[0] != b']' => {
                let mut to = take(&mut rest)?;
                if to == b'\\' {
                    to = take(&mut rest)?;
                }
                (from..=to).for_each(|byte| set[usize::from(byte)] = true);
                None
            }
            (b'[', _) if rest.first() == Some(&b':') => {
                let end = rest.iter().position(|&byte| byte == b']')?;
                match rest[1..end].strip_suffix(b":") {
                    Some(name) if end >= 2 => {
                        let holds = named(name)?;
                        (0..=u8::MAX).for_each(|byte| set[usize::from(byte)] |= holds(byte));
                        rest = &rest[end + 1..];
                        None
                    }
                    // No class: the bracket itself.
                    _ => {
                        set[usize::from(b'[')] = true;
                        Some(b'[')
                    }
                }
            }
            (byte, _) => {
                set[usize::from(byte)] = true;
                Some(byte)
            }
        };
    }
    Some((class(|byte| set[usize::from(byte)] != negated), rest))
}

/// The classes that git knows, of ASCII alone.
fn named(name: &[u8]) -> Option<fn(u8) -> bool> {
    Some(match name {
        b"alnum" => |byte| byte.is_ascii_alphanumeric(),
        b"alpha" => |byte| byte.is_ascii_alphabetic(),
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => |byte| byte.is_ascii_control(),
        b"digit" => |byte| byte.is_ascii_digit(),
        b"graph" => |byte| byte.is_ascii_graphic(),
        b"lower" => |byte| byte.is_ascii_lowercase(),
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => |byte| byte.is_ascii_punctuation(),
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => |byte| byte.is_ascii_uppercase(),
        b"xdigit" => |byte| byte.is_ascii_hexdigit(),
        _ => return None,
    })
}
