use super::*;

/// A small deterministic generator: enough to reach every field.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // Mixes small, medium and extreme magnitudes.
        self.0 >> (self.0 % 64)
    }

    fn state(&mut self) -> State {
        let holder = HolderNonce([self.roll() as u8; 16]);
        let claim = Claim {
            holder,
            lease_ms: self.roll() % (LEASE_MAX_MS + 1),
            expires: WallMs(self.roll() % 10_000_000_000_000),
        };
        let hold = match self.roll() % 4 {
            0 => Hold::Free,
            1 => Hold::Held(claim),
            2 => Hold::Frozen(claim),
            _ => Hold::Retired,
        };
        let head = (self.roll().is_multiple_of(2)).then(|| SnapshotId {
            created_ms: self.roll() % 10_000_000_000_000,
            random: self.roll() as u32,
        });
        State {
            format: if self.roll().is_multiple_of(2) { NameFormat::One } else { NameFormat::Two },
            epoch: Epoch { counter: self.roll() as u32 / 2, salt: self.roll() as u16 },
            token: FencingToken(self.roll() / 2),
            seq: Seq(self.roll() / 2),
            hold,
            generation: Generation(self.roll() / 2),
            head,
            chain: Chain(self.roll().to_be_bytes()),
            op: OpNonce(self.roll().to_be_bytes()),
        }
    }
}

#[test]
fn names_round_trip_and_fit() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut longest = 0;
    for _ in 0..20_000 {
        let state = dice.state();
        let name = state.to_string();
        longest = longest.max(name.len());
        assert_eq!(name.parse(), Ok(state), "{name}");
    }
    assert!(longest <= NAME_MAX, "{longest}");
}

#[test]
fn every_malformed_name_is_rejected() {
    // Each single-character edit of a good name either names another state
    // that prints back to exactly these characters, or is refused.
    let mut dice = Dice(42);
    for _ in 0..60 {
        let name = dice.state().to_string();
        for at in 0..name.len() {
            let (before, after) = (&name[..at], &name[at + 1..]);
            let mut edits = vec![format!("{before}{after}"), before.to_owned()];
            for c in ['.', '-', '0', '9', 'a', 'F', ' ', '/', '+', '\u{e9}'] {
                edits.push(format!("{before}{c}{after}"));
                edits.push(format!("{before}{c}{}{after}", &name[at..=at]));
            }
            for edit in edits {
                if let Ok(state) = edit.parse::<State>() {
                    assert_eq!(state.to_string(), edit);
                }
            }
        }
    }
    for name in ["", "1", ".", "..", "3.1-0000.0.0.free.-.0.0.0.none.x.y"] {
        assert!(name.parse::<State>().is_err(), "{name:?}");
    }
}

#[test]
fn a_counter_beyond_its_end_names_no_state() {
    let last = State {
        epoch: Epoch { counter: Epoch::END, salt: 1 },
        token: FencingToken::END,
        seq: Seq::END,
        generation: Generation::END,
        ..born()
    };
    assert_eq!(last.to_string().parse(), Ok(last));
    assert!(last.is_at_an_end() && !born().is_at_an_end());
    for beyond in [
        State { epoch: Epoch { counter: u32::MAX, salt: 1 }, ..last },
        State { token: FencingToken(u64::MAX), ..last },
        State { token: FencingToken::END.next(), ..last },
        State { seq: Seq(u64::MAX), ..last },
        State { generation: Generation(u64::MAX), ..last },
    ] {
        assert!(beyond.to_string().parse::<State>().is_err(), "{beyond}");
    }
    assert_eq!(FencingToken(u64::MAX).next(), FencingToken(u64::MAX), "and never wraps");
}

/// As the first version of the chain made it.
fn in_the_first_format(previous: Option<&State>, next: State) -> State {
    State { format: NameFormat::One, ..next }.chained_to(previous)
}

#[test]
fn a_register_of_the_first_format_goes_over_with_its_next_step_and_not_back() {
    let old = in_the_first_format(None, born());
    assert!(old.is_birth() && old.to_string().starts_with("1."));
    let granted =
        in_the_first_format(Some(&old), old.granted(ME, 30_000, WallMs(1_000), OpNonce([2; 8])));
    assert!(granted.follows(&old));
    let next = granted.released(OpNonce([3; 8]));
    assert!(next.follows(&granted) && next.to_string().starts_with("2."));
    let back = in_the_first_format(Some(&next), next.advanced(OpNonce([4; 8])));
    assert!(!back.follows(&next));
}

#[test]
fn a_chain_covers_every_field_of_the_state_before() {
    let held = born().granted(ME, 30_000, WallMs(1_000), OpNonce([2; 8]));
    let next = held.advanced(OpNonce([3; 8]));
    let forged = |at: usize, text: &str| {
        let name = held.to_string();
        let mut fields: Vec<&str> = name.split('.').collect();
        fields[at] = text;
        fields.join(".").parse::<State>().expect("a state")
    };
    let same = "3".repeat(32);
    for (at, text) in [
        (0, "1"),
        (2, "7"),
        (5, same.as_str()),
        (6, "1"),
        (7, "1"),
        (8, "9"),
        (9, "5-00000006"),
        (10, "0000000000000000"),
        (11, "0000000000000000"),
    ] {
        assert!(!next.follows(&forged(at, text)), "field {at}");
    }
    assert!(next.follows(&held));
}

fn born() -> State {
    State::birth(Epoch { counter: 1, salt: 7 }, OpNonce([1; 8]))
}

const ME: HolderNonce = HolderNonce([3; 16]);

#[test]
fn each_transition_raises_seq_and_only_changes_of_holder_raise_the_token() {
    let op = OpNonce([2; 8]);
    let head = SnapshotId { created_ms: 5, random: 6 };
    let held = born().granted(ME, 30_000, WallMs(1_000), op);
    assert_eq!((held.token, held.seq), (FencingToken(1), Seq(1)));
    for (what, next, token) in [
        ("extend", held.extended(30_000, WallMs(2_000), op), 1),
        ("publish", held.with_head(head, op), 1),
        ("release", held.released(op), 1),
        ("advance", held.advanced(op), 1),
        ("steal", held.granted(HolderNonce([4; 16]), 1, WallMs(0), op), 2),
        ("freeze", held.frozen(ME, 1, WallMs(0), op), 2),
        ("fence", held.fenced(op), 2),
        ("retire", held.retired(op), 2),
    ] {
        assert_eq!(next.seq, Seq(2), "{what}");
        assert_eq!(next.token, FencingToken(token), "{what}");
        assert!(next.follows(&held), "{what}");
        assert!(!next.follows(&born()), "{what}");
    }
    assert!(born().is_birth() && !held.is_birth());
}

#[test]
fn a_renewal_never_shortens_what_was_promised() {
    let op = OpNonce([2; 8]);
    let held = born().granted(ME, 30_000, WallMs(100_000), op);
    let Hold::Held(claim) = held.extended(5_000, WallMs(101_000), op).hold else { panic!("held") };
    assert_eq!(claim.expires, WallMs(130_001), "and it tells renewals apart");
    assert_eq!(claim.lease_ms, 29_001, "whoever watches the name waits long enough");
}

#[test]
fn a_wall_clock_that_was_set_back_does_not_make_a_lease_longer() {
    let op = OpNonce([2; 8]);
    let held = born().granted(ME, 30_000, WallMs(100_000_000), op);
    let Hold::Held(claim) = held.extended(30_000, WallMs(1_000_000), op).hold else {
        panic!("held")
    };
    assert_eq!(claim.lease_ms, 30_000, "whoever watches the name waits for one lease");
    assert_eq!(claim.expires, WallMs(100_030_001), "and what was written down stays");
}

#[test]
fn a_head_move_copies_the_claim() {
    let held = born().granted(ME, 30_000, WallMs(100_000), OpNonce([2; 8]));
    let moved = held.with_head(SnapshotId { created_ms: 1, random: 1 }, OpNonce([3; 8]));
    assert_eq!(moved.hold, held.hold);
    assert_eq!(moved.generation, Generation(1));
}

#[test]
fn a_release_without_an_event_says_so_in_its_place_alone() {
    let birth = State::birth(Epoch { counter: 1, salt: 2 }, OpNonce([1; 8]));
    let held = birth.granted(HolderNonce([4; 16]), 60_000, WallMs(0), OpNonce([2; 8]));
    let untold = held.released_untold();
    assert!(untold.follows(&held) && untold.is_untold_release());
    assert_eq!(untold, held.released_untold(), "two who do so agree");
    assert!(!held.released(OpNonce([3; 8])).is_untold_release());
    let later = held.extended(60_000, WallMs(1), OpNonce([3; 8]));
    assert!(!later.released(untold.op).is_untold_release());
}
