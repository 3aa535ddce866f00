//! New inputs out of old ones, the same for the same seed: for a machine whose compiler
//! cannot tell what an input reaches.

/// Draws inputs.
pub struct Mutator {
    state: u64,
    corpus: Vec<Vec<u8>>,
}

/// What parsers treat specially.
const TOKENS: &[&[u8]] = &[
    b"0",
    b"-1",
    b"9223372036854775807",
    b"18446744073709551615",
    b"18446744073709551616",
    b"00",
    b"none",
    b"-",
    b".",
    b"..",
    b"/",
    b" ",
    b"\n",
    b"\r\n",
    b"\0",
    b"\\",
    b"\\u0000",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"null",
    b"true",
    b"1e999",
    b"\xff",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\xef\xbb\xbf",
    b"\xf0\x9f\x92\xa9",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
];

/// No input is longer.
const LONGEST: usize = 16 << 10;

impl Mutator {
    /// One that starts from `corpus`, which has at least one input.
    pub fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Self {
        assert!(!corpus.is_empty(), "nothing to start from");
        Mutator { state: seed | 1, corpus }
    }

    /// The next input.
    pub fn draw(&mut self) -> Vec<u8> {
        let at = self.below(self.corpus.len());
        let mut input = self.corpus[at].clone();
        for _ in 0..=self.below(4) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let rest = input.len() - at;
        let some = self.below(rest.min(32) + 1);
        match self.below(8) {
            0 if rest > 0 => input[at] ^= 1 << self.below(8),
            1 if rest > 0 => input[at] = self.below(256) as u8,
            2 => drop(input.drain(at..at + some)),
            3 => input.truncate(at),
            4 => {
                let copy = input[at..at + some].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, copy);
            }
            5 => {
                let token = TOKENS[self.below(TOKENS.len())];
                input.splice(at..at + some, token.iter().copied());
            }
            6 => {
                let token = TOKENS[self.below(TOKENS.len())];
                input.splice(at..at, token.iter().copied());
            }
            _ => {
                let other = self.below(self.corpus.len());
                let from = self.below(self.corpus[other].len() + 1);
                input.truncate(at);
                input.extend_from_slice(&self.corpus[other][from..]);
            }
        }
    }

    /// A number below `end`, or zero.
    fn below(&mut self, end: usize) -> usize {
        // xorshift64*: enough to spread, and the same everywhere.
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let drawn = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        usize::try_from(drawn).unwrap_or(0) % end.max(1)
    }
}
