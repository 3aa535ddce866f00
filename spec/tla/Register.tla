------------------------------- MODULE Register -------------------------------
(* The fence register: what its states are, and which steps lead from one to   *)
(* the next (spec/locking.md, "The register" and "Tokens"). Everything else    *)
(* here builds on it: Lock and Holds move a register by these functions, and   *)
(* Trace asks of every step in an audit log whether it is one of these.        *)
(* A state is a record. These fields are those of the name on disk:            *)
(*   token   the fencing token          hold    free, held, frozen or retired  *)
(*   holder  of a claim, else None      gen     number of commits so far       *)
(*   head    the newest commit or None                                         *)
(* A model adds what it needs (lease), and so does a trace (seq, expires, op). *)
EXTENDS Naturals
CONSTANTS
    None,       \* no holder, no head
    Inc(_)      \* the next number: a trace has numbers that TLC has not
Birth == [token |-> 0, hold |-> "free", holder |-> None, gen |-> 0, head |-> None]
-------------------------------------------------------------------------------
(* The steps as functions: what an operation makes of the state that it READ. *)
Granted(s, p)  == [s EXCEPT !.token = Inc(s.token), !.hold = "held", !.holder = p]
Frozen(s, p)   == [s EXCEPT !.token = Inc(s.token), !.hold = "frozen", !.holder = p]
Retired(s)     == [s EXCEPT !.token = Inc(s.token), !.hold = "retired", !.holder = None]
Released(s)    == [s EXCEPT !.hold = "free", !.holder = None]
WithHead(s, x) == [s EXCEPT !.head = x, !.gen = Inc(s.gen)]
(* The same as relations: may an operation of this kind lead from s to t? Only *)
(* what is said here may change, so each begins with what is left as it was.   *)
Same(s, t, fields) == \A f \in fields : s[f] = t[f]
Lineage == {"gen", "head"}      Claim == {"hold", "holder"}
NewToken(s, t) == t.token = Inc(s.token) /\ Same(s, t, Lineage)      \* LOCK-11
Taken(s, t)    == NewToken(s, t) /\ t.hold = "held" /\ s.hold # "retired"
Step(kind, s, t) ==
    CASE kind = "acquire"  -> Taken(s, t) /\ (s.hold = "held" => s.holder = t.holder)
      [] kind = "steal"    -> Taken(s, t) /\ s.hold = "held" /\ s.holder # t.holder
      [] kind = "reclaim"  -> Taken(s, t) /\ (s.hold = "held" => s.holder # t.holder)
      [] kind = "transfer" -> Taken(s, t) /\ s.hold = "held"
      [] kind = "freeze"   -> NewToken(s, t) /\ t.hold = "frozen" /\ s.hold # "retired"
      [] kind = "retire"   -> NewToken(s, t) /\ t.hold = "retired" /\ s.hold # "retired"
      [] kind = "renew"    -> s.hold = "held" /\ Same(s, t, Lineage \cup Claim \cup {"token"})
      [] kind = "release"  -> /\ s.hold = "held" /\ t.hold = "free"
                              /\ Same(s, t, Lineage \cup {"token"})
      [] kind = "unfreeze" -> /\ s.hold = "frozen" /\ t.hold = "free"
                              /\ Same(s, t, Lineage \cup {"token"})
      [] kind = "publish"  -> /\ s.hold \in {"free", "held"}         \* LOCK-14
                              /\ Same(s, t, Claim \cup {"token"})
                              /\ t.head # s.head /\ t.head # None /\ t.gen = Inc(s.gen)
      \* Only moves on, to make an outcome certain; so does the second step of a birth.
      [] kind = "advance"  -> Same(s, t, Lineage \cup Claim \cup {"token"})
      [] kind = "create"   -> s.hold = "free" /\ Same(s, t, Lineage \cup Claim \cup {"token"})
      [] OTHER             -> FALSE
===============================================================================
