-------------------------------- MODULE Trace ---------------------------------
(* Is what the audit logs tell a behaviour of the register? `jvs audit --tla`  *)
(* writes histories, this module walks along each of them, and TLC stops at    *)
(* the first item that no behaviour of the register explains. Each event says  *)
(* which state it saw and which it went to, so nothing has to be guessed.      *)
(* Whether the chains of hashes hold is for `jvs audit --verify`.              *)
(* The module Data, a part of what it wrote, defines Histories, a sequence of  *)
(* <<label, states, first, items>>; an item is <<what, kind, from, to, where>>. *)
EXTENDS Register, Sequences, Data

VARIABLES h, i, reg, rejected   \* which history, which item, the register, why not

\* Numbers may have 64 bits, which is more than TLC's: three digits to the base 10^9.
Base == 1000000000
Carry2(d) == IF d[2] >= Base THEN <<d[1] + 1, d[2] - Base, d[3]>> ELSE d
Carry(d) == IF d[3] >= Base THEN Carry2(<<d[1], d[2] + 1, d[3] - Base>>) ELSE Carry2(d)
Plus(m, n) == Carry(<<m[1] + n[1], m[2] + n[2], m[3] + n[3]>>)
Next1(n) == Plus(n, <<0, 0, 1>>)
Less(m, n) == \E k \in 1..3 : m[k] < n[k] /\ \A j \in 1..(k - 1) : m[j] = n[j]
Zero == <<0, 0, 0>>

Name(text) == IF text = "-" THEN None ELSE text
State(k) == LET s == Histories[h][2][k] IN IF k = 0 THEN None ELSE
    [format |-> s[1], life |-> s[2], salt |-> s[3], token |-> s[4], seq |-> s[5], hold |-> s[6],
     holder |-> Name(s[7]), lease |-> s[8], expires |-> s[9], gen |-> s[10], head |-> Name(s[11]),
     chain |-> s[12], op |-> s[13]]
-------------------------------------------------------------------------------
(* A step of Register, with what only a name on disk has.                     *)
Sane(s) == /\ s.hold \in {"free", "retired"} <=> s.holder = None
           /\ s.holder = None => s.lease = Zero /\ s.expires = Zero
Follows(s, t) == t.seq = Inc(s.seq) /\ Same(s, t, {"life", "salt"}) /\ t.format >= s.format  \* LOCK-4
Lease(kind, s, t) ==
    CASE kind \in {"publish", "advance", "create"} -> Same(s, t, {"lease", "expires"})   \* LOCK-14
      [] kind = "renew" -> Less(s.expires, t.expires) \/ (t.format = 1 /\ s.expires = t.expires)
      [] OTHER -> TRUE
Legal(kind, s, t) == Sane(t) /\ Follows(s, t) /\ Step(kind, s, t) /\ Lease(kind, s, t)

\* Renewals that nobody told of, because their process died first: each moves the end.
Renewals(s, t) ==
    /\ Step("renew", s, t) /\ Same(s, t, {"life", "salt"}) /\ Less(s.seq, t.seq)
    /\ t.format >= s.format
    /\ ~Less(Plus(t.expires, s.seq), Plus(s.expires, t.seq))
Leads(s, t) == s = t \/ (s # None /\ Renewals(s, t))

\* A register is born free, and in a later life above the tokens of those before.
Born(kind, s, t) ==
    /\ kind \in {"create", "rebuild"} /\ t.seq = Zero /\ t.hold = "free" /\ Sane(t)
    /\ s # None => Less(s.life, t.life) /\ ~Less(t.token, s.token)

\* May the register go on so? to: where it is afterwards.
May(item, from, to) ==
    CASE item[1] = "born"  -> Born(item[2], reg, to)
      [] item[1] = "step"  -> reg # None /\ Leads(reg, from) /\ Legal(item[2], from, to)
      [] item[1] = "tried" -> IF from = None THEN Born(item[2], None, to)
                              ELSE reg # None /\ Leads(reg, from) /\ Legal(item[2], from, to)
      [] item[1] = "lost"  -> Legal("renew", from, to)  \* by a power cut, which takes renewals only
      [] item[1] = "untold" ->                          \* there was no room to tell of it
           reg # None /\ Sane(to) /\ Step("release", reg, to)
           /\ Same(reg, to, {"life", "salt"}) /\ Less(reg.seq, to.seq)
      [] item[1] = "shows" -> Leads(reg, to)            \* what the register itself is at now
      [] OTHER -> FALSE

Init == h \in 1..Len(Histories) /\ i = 1 /\ rejected = None /\ reg = State(Histories[h][3])
Next ==
    /\ i <= Len(Histories[h][4]) /\ rejected = None
    /\ LET item == Histories[h][4][i] from == State(item[3]) to == State(item[4]) IN
       IF May(item, from, to)
       THEN /\ reg' = IF item[1] \in {"lost", "tried"} THEN reg ELSE to
            /\ i' = i + 1 /\ UNCHANGED rejected
       ELSE /\ rejected' = <<Histories[h][1], i, item[1], item[2], item[5]>>
            /\ UNCHANGED <<i, reg>>
    /\ UNCHANGED h
Spec == Init /\ [][Next]_<<h, i, reg, rejected>>
Accepted == rejected = None
===============================================================================
