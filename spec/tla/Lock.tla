--------------------------------- MODULE Lock ---------------------------------
(* Sessions that take, keep, steal and give back one lock, and publish under   *)
(* it, while renames are lost or come late, leases end at any moment, sessions *)
(* crash and the power goes (spec/locking.md, spec/snapshot.md "Publishing").  *)
(* One step is one READ or one rename. Names of states never come back, so a   *)
(* name need not be kept: a rename whose source is gone is dropped, a process  *)
(* whose READ is outdated has src = None, and renewals cost no states.         *)
EXTENDS Register, FiniteSets, TLC
CONSTANTS
    Sessions, Snapshots,
    MaxToken, Faults, Crashes, Cuts,    \* how much may go wrong
    Orders,     \* how often a holder may hand the lock over, or somebody freeze it
    Clocks,     \* TRUE: leases protect a holder. FALSE: anybody may steal at any moment
    Doctor,     \* is there one who removes what was not committed?
    Off         \* the rules that are left out
Keeps(rule) == rule \notin Off
Succ(n) == n + 1
Symmetry == Permutations(Sessions) \cup Permutations(Snapshots)
VARIABLES
    reg,        \* the register; lease: live, lapsed (by a clock within the skew), over (by any)
    flights,    \* renames that may still be applied: [from, to]
    at,         \* of each session: [pc, op, token, src, to, x]; token: what it is bound to,
                \* or what an acquire tried to be granted
    belief,     \* of each session: the token that it was told of, and the lease it counts on
    snap,       \* of each snapshot: [st, token, parent, under, told]
    doc,        \* what the doctor READ, or what it listed
    disk,       \* what survives a power cut
    given,      \* the newest token that somebody was told to hold, whom, and was it told twice
    left        \* faults, crashes, power cuts and orders that may still happen
vars == <<reg, flights, at, belief, snap, doc, disk, given, left>>
Idle == [pc |-> "idle", op |-> "none", token |-> 0, src |-> None, to |-> None, x |-> None]
NoBelief == [token |-> 0, lease |-> "over"]
First == [lease |-> "over"] @@ Birth
Unused == [st |-> "unused", token |-> 0, parent |-> None, under |-> 0, told |-> "nothing"]
Init ==
    /\ reg = First /\ disk = First /\ flights = {}
    /\ at = [p \in Sessions |-> Idle] /\ belief = [p \in Sessions |-> NoBelief]
    /\ snap = [x \in Snapshots |-> Unused] /\ doc = None
    /\ given = [token |-> 0, who |-> None, twice |-> FALSE]
    /\ left = [faults |-> Faults, crashes |-> Crashes, cuts |-> Cuts, orders |-> Orders]
-------------------------------------------------------------------------------
(* What an operation may do, seeing state s: jvs-lock/src/decide.rs.          *)
HeldBy(s, p, t) == s.hold = "held" /\ s.holder = p /\ (s.token = t \/ ~Keeps("BoundToToken"))
MayTake(s) ==                                                              \* LOCK-22 to 24
    \/ s.hold = "free" \/ ~Clocks \/ (s.lease = "over" /\ Keeps("WhatIsOverIsTaken"))
    \/ (s.lease = "lapsed" /\ ~Keeps("SkewInStealMargin"))
Live(s) == [s EXCEPT !.lease = IF Clocks THEN "live" ELSE "over"]
Grant(s, p) == IF s.hold = "held" /\ ~Keeps("StealRaisesToken") THEN [s EXCEPT !.holder = p] ELSE Granted(s, p)
Release(s) == IF Keeps("ReleaseKeepsToken") THEN Released(s) ELSE [Released(s) EXCEPT !.token = 0]
Commit(s, x) ==                                                            \* LOCK-14
    IF Keeps("HeadMoveCopiesExpiry") THEN WithHead(s, x) ELSE [WithHead(s, x) EXCEPT !.lease = "over"]
Try(s) == [what |-> "try", to |-> s]
Done == [what |-> "done", to |-> None]      Lost == [what |-> "lost", to |-> None]
OwnStateOff(a) == a.pc = "doubt" /\ ~Keeps("OnlyOwnStateIsDone")
Decide(a, p, s) ==
    CASE a.op = "acquire" ->
           \* What another process of the session made is refreshed (LOCK-29).
           (CASE s.hold = "held" /\ s.holder = p /\ (s.token = a.token \/ OwnStateOff(a)) -> Done
              [] s.hold = "held" /\ s.holder = p -> Try(Live(s))
              [] MayTake(s) /\ s.token < MaxToken -> Try(Live(Grant(s, p)))
              [] OTHER -> Lost)
      [] a.op = "renew" -> IF HeldBy(s, p, a.token) THEN Try(Live(s)) ELSE Lost
      [] a.op = "release" -> IF HeldBy(s, p, a.token) THEN Try(Release(s)) ELSE Done
      [] a.op = "publish" ->
           (CASE s.head = a.x \/ snap[a.x].st = "ready" -> Done
              [] /\ HeldBy(s, p, a.token) \/ ~Keeps("CommitIsFenced")
                 /\ s.head = snap[a.x].parent -> Try(Commit(s, a.x))
              [] OTHER -> Lost)
-------------------------------------------------------------------------------
(* The register moves: by the rename of whoever, now or late. Ghosts follow.  *)
MoveTo(s) == reg' = s /\ disk' = disk /\ flights' = IF Keeps("NamesNeverReturn") THEN {} ELSE flights
\* What the others READ is no name any more. That it is not there is no answer (LOCK-5), so
\* they READ again. Nothing depends on what they meant to make of it.
Outdated(who) ==
    [q \in Sessions |->
       IF q \in who \/ ~Keeps("NamesNeverReturn") \/ at[q].src = None THEN at[q]
       ELSE [at[q] EXCEPT !.src = None, !.to = IF at[q].op = "acquire" THEN @ ELSE None,
                          !.pc = IF @ = "cas" /\ Keeps("EnoentIsUnknown") THEN "doubt" ELSE @]]
Landed(s) == IF s.head = reg.head THEN snap ELSE [snap EXCEPT ![s.head].under = reg.token]
Land(f) ==      \* a rename is applied minutes after its answer was lost
    /\ f.from = reg /\ MoveTo(f.to) /\ at' = Outdated({}) /\ snap' = Landed(f.to)
    /\ UNCHANGED <<belief, doc, given, left>>
-------------------------------------------------------------------------------
(* How an operation ends.                                                     *)
Failed(p) ==    \* and certainly was not, and never will be applied
    /\ at' = [at EXCEPT ![p] = Idle]
    /\ belief' = [belief EXCEPT ![p] = IF @.token \in {0, at[p].token} THEN NoBelief ELSE @]
    /\ snap' = IF at[p].x = None THEN snap
               ELSE [snap EXCEPT ![at[p].x] = [@ EXCEPT !.told = "failed", !.st = "gone"]]
    /\ UNCHANGED <<reg, flights, disk, doc, given, left>>
Unknown(p) ==   \* left to the doctor
    /\ at' = [at EXCEPT ![p] = Idle]
    /\ belief' = [belief EXCEPT ![p] = IF at[p].op = "publish" THEN @ ELSE NoBelief]
    /\ UNCHANGED <<reg, flights, snap, disk, doc, given, left>>
Given(t, p) == [token |-> t, who |-> p, twice |-> given.twice \/ t < given.token
                                                  \/ (t = given.token /\ p # given.who)]
\* The caller is told. s is the state that the register had; it is durable first (LOCK-12).
Succeed(p, a, s, others) ==
    /\ disk' = IF Cuts > 0 /\ Keeps("DurableBeforeTold") /\ a.op \in {"acquire", "publish"} THEN s ELSE disk
    /\ at' = [others EXCEPT ![p] = IF a.op = "publish" THEN [Idle EXCEPT !.pc = "show", !.x = a.x] ELSE Idle]
    /\ belief' = [belief EXCEPT ![p] =
         CASE a.op \in {"acquire", "renew"} ->                             \* LOCK-15
                [token |-> s.token, lease |-> IF Keeps("BeliefFromBefore") THEN a.to.lease ELSE "live"]
           [] a.op = "release" -> NoBelief
           [] OTHER -> @]
    /\ given' = IF a.op = "acquire" THEN Given(s.token, p) ELSE given
    /\ UNCHANGED <<doc, left>>
-------------------------------------------------------------------------------
(* The driver's loop: jvs-lock/src/drive.rs.                                  *)
Begin(p, op) ==
    /\ at[p].pc = "idle"
    /\ CASE op = "acquire" -> belief[p] = NoBelief \/ (Clocks /\ belief[p].lease = "over")
         [] op = "renew"   -> Clocks /\ belief[p].lease # "over"            \* LOCK-18
         [] op = "release" -> belief[p].token > 0
    /\ belief' = IF op = "acquire" \/ (op = "release" /\ Keeps("BeliefEndsBeforeRelease"))  \* LOCK-16
                 THEN [belief EXCEPT ![p] = NoBelief] ELSE belief
    /\ at' = [at EXCEPT ![p] = [Idle EXCEPT !.pc = "read", !.op = op,
                                   !.token = IF op = "acquire" THEN 0 ELSE belief[p].token]]
    /\ UNCHANGED <<reg, flights, snap, doc, disk, given, left>>
\* Binds a snapshot to token and head of now, and shows a head that is not visible yet.
Bind(p, x) ==
    /\ at[p].pc = "idle" /\ belief[p].token > 0 /\ HeldBy(reg, p, belief[p].token)
    /\ snap[x].st = "unused"
    /\ at' = [at EXCEPT ![p] = [Idle EXCEPT !.pc = "read", !.op = "publish",
                                            !.token = belief[p].token, !.x = x]]
    /\ LET shown == IF reg.head # None /\ Keeps("HeadShownFirst")           \* SNAP-10
                    THEN [snap EXCEPT ![reg.head].st = "ready"] ELSE snap
           early == IF Keeps("CommittedBeforeShown") THEN "staged" ELSE "ready"
       IN snap' = [shown EXCEPT ![x] = [Unused EXCEPT !.st = early, !.token = belief[p].token,
                                                      !.parent = reg.head]]
    /\ disk' = IF Cuts > 0 THEN reg ELSE disk
    /\ UNCHANGED <<reg, flights, belief, doc, given, left>>
Read(p) ==
    /\ at[p].pc \in {"read", "doubt"}
    /\ LET a == at[p] d == Decide(a, p, reg)
           unchanged == a.pc = "doubt" /\ a.src = reg IN
       CASE unchanged /\ ~Keeps("UnchangedIsNotFailed") -> Failed(p)        \* LOCK-6
         [] d.what = "lost" -> Failed(p)
         [] d.what = "done" -> Succeed(p, a, reg, at) /\ UNCHANGED <<reg, flights, snap>>
         [] d.what = "try" -> \* again the same rename, or another one from this state
              /\ at' = [at EXCEPT ![p].pc = "cas", ![p].src = reg,
                                  ![p].to = IF unchanged THEN @ ELSE d.to,
                                  ![p].token = IF a.op # "acquire" \/ unchanged THEN @
                                               ELSE IF d.to.token = reg.token THEN 0 ELSE d.to.token]
              /\ UNCHANGED <<reg, flights, belief, snap, doc, disk, given, left>>
Cas(p) ==
    LET a == at[p]      doubt == [Outdated({p}) EXCEPT ![p].pc = "doubt"] IN
    /\ a.pc = "cas"
    /\ \/ /\ a.src = reg                            \* applied, and answered
          /\ MoveTo(a.to) /\ Cuts = 0 /\ snap' = Landed(a.to) /\ Succeed(p, a, a.to, Outdated({p}))
       \/ /\ a.src = reg /\ Cuts > 0                \* the same; then it is made durable and told
          /\ MoveTo(a.to) /\ snap' = Landed(a.to) /\ at' = doubt /\ UNCHANGED <<belief, doc, given, left>>
       \/ /\ a.src = reg /\ left.faults > 0         \* applied, and the answer is lost
          /\ left' = [left EXCEPT !.faults = @ - 1] /\ MoveTo(a.to) /\ snap' = Landed(a.to)
          /\ at' = IF Keeps("EnoentIsUnknown") THEN doubt ELSE [doubt EXCEPT ![p].pc = "failed"]
          /\ UNCHANGED <<belief, doc, given>>
       \/ /\ a.src = reg /\ left.faults > 0         \* not applied yet: it may land later
          /\ left' = [left EXCEPT !.faults = @ - 1] /\ flights' = flights \cup {[from |-> reg, to |-> a.to]}
          /\ at' = [at EXCEPT ![p].pc = "doubt"] /\ UNCHANGED <<reg, belief, snap, doc, disk, given>>
       \/ /\ a.src # reg                            \* ENOENT: says nothing (LOCK-5)
          /\ at' = [at EXCEPT ![p].pc = IF Keeps("EnoentIsUnknown") THEN "doubt" ELSE "failed"]
          /\ UNCHANGED <<reg, flights, belief, snap, doc, disk, given, left>>
\* Whoever gives up moves the register on first, so that no rename of its own can land.
GiveUp(p) ==
    /\ at[p].pc = "doubt"
    /\ \/ Unknown(p)
       \/ /\ at[p].src = reg /\ MoveTo(reg) /\ at' = [Outdated({p}) EXCEPT ![p].pc = "failed"]
          /\ UNCHANGED <<belief, snap, doc, given, left>>
Show(p) ==      \* READY, and only then "published"
    /\ at[p].pc = "show"
    /\ snap' = [snap EXCEPT ![at[p].x].st = "ready", ![at[p].x].told = "published"]
    /\ at' = [at EXCEPT ![p] = Idle] /\ UNCHANGED <<reg, flights, belief, doc, disk, given, left>>
\* Another process of the same session: renews (LOCK-8), or takes the lock again while an
\* operation of the first is still under way (LOCK-13).
Fellow(p) ==
    /\ Cuts = 0 /\ at' = Outdated({}) /\ UNCHANGED <<snap, doc, left>>
    /\ \/ /\ belief[p].token > 0 /\ HeldBy(reg, p, belief[p].token)
          /\ Clocks => belief[p].lease # "over"
          /\ MoveTo(Live(reg)) /\ UNCHANGED given
          /\ belief' = [belief EXCEPT ![p].lease = Live(reg).lease]
       \/ /\ at[p].pc # "idle" /\ at[p].token < reg.token /\ reg.token < MaxToken /\ MayTake(reg)
          /\ MoveTo(Live(Grant(reg, p))) /\ given' = Given(reg.token + 1, p)
          /\ belief' = [belief EXCEPT ![p] = [token |-> reg.token + 1, lease |-> Live(reg).lease]]
\* A holder hands the lock over to one who waits and is not told yet; its own belief ends
\* first (LOCK-16). Whoever freezes it asks what a thief asks (C-8); that ends by a clock, too.
Order(p) ==
    /\ left.orders > 0 /\ left' = [left EXCEPT !.orders = @ - 1] /\ reg.token < MaxToken
    /\ at' = Outdated({}) /\ UNCHANGED <<snap, doc, given>>
    /\ \/ /\ at[p].pc = "idle" /\ belief[p].token > 0 /\ HeldBy(reg, p, belief[p].token)
          /\ \E q \in Sessions \ {p} : MoveTo(Live(Granted(reg, q)))
          /\ belief' = [belief EXCEPT ![p] = NoBelief]
       \/ at[p].pc # "dead" /\ MayTake(reg) /\ MoveTo(Live(Frozen(reg, p))) /\ UNCHANGED belief
Unfreeze == /\ reg.hold = "frozen" /\ MoveTo(Released(reg)) /\ at' = Outdated({})
            /\ UNCHANGED <<belief, snap, doc, given, left>>
-------------------------------------------------------------------------------
(* What happens to them.                                                      *)
Crash(p) ==
    /\ left.crashes > 0 /\ at[p].pc # "dead" /\ left' = [left EXCEPT !.crashes = @ - 1]
    /\ at' = [at EXCEPT ![p] = [Idle EXCEPT !.pc = "dead"]]
    /\ belief' = [belief EXCEPT ![p] = NoBelief] /\ UNCHANGED <<reg, flights, snap, doc, disk, given>>
\* Time passes for whatever p was granted: its leases look over by some clock within the
\* skew (lapsed), and later by every clock, its own included (over). At any moment.
Ages(p, from, to) ==
    LET old(s) == IF s # None /\ s.holder = p /\ s.lease = from THEN [s EXCEPT !.lease = to] ELSE s IN
    /\ Clocks /\ (belief[p].lease = from \/ reg # old(reg))
    /\ reg' = old(reg) /\ disk' = old(disk)
    /\ flights' = {[from |-> old(f.from), to |-> old(f.to)] : f \in flights}
    /\ at' = [q \in Sessions |-> [at[q] EXCEPT !.src = old(@), !.to = old(@)]]
    /\ belief' = [belief EXCEPT ![p].lease = IF @ = from THEN to ELSE @] /\ UNCHANGED <<snap, doc, given, left>>
RECURSIVE Line(_)       \* a snapshot and its ancestors
Line(x) == IF x = None THEN {} ELSE {x} \cup Line(snap[x].parent)
PowerCut ==     \* everybody's: what was not synced is gone, and so are all processes
    /\ left.cuts > 0 /\ left' = [left EXCEPT !.cuts = @ - 1]
    /\ reg' = disk /\ flights' = {}
    /\ at' = [p \in Sessions |-> Idle] /\ belief' = [p \in Sessions |-> NoBelief]
    /\ snap' = [x \in Snapshots |-> IF x \in Line(disk.head) THEN snap[x] ELSE [snap[x] EXCEPT !.under = 0]]
    /\ UNCHANGED <<doc, disk, given>>
Flush == Cuts > 0 /\ disk # reg /\ disk' = reg /\ UNCHANGED <<reg, flights, at, belief, snap, doc, given, left>>
\* The doctor removes what can never be committed: READ first, then list and look.
Listed == {x \in Snapshots : snap[x].st = "staged"}
DoctorReads ==
    /\ Doctor /\ doc = None
    /\ doc' = IF Keeps("ReadBeforeLooking") THEN [state |-> reg, listed |-> Snapshots]
              ELSE [state |-> None, listed |-> Listed]
    /\ UNCHANGED <<reg, flights, at, belief, snap, disk, given, left>>
DoctorRemoves ==
    /\ doc # None /\ doc' = None
    /\ LET s == IF doc.state = None THEN reg ELSE doc.state
           unseen(x) == IF doc.state = None THEN TRUE ELSE snap[x].st = "staged"
           dead(x) == \/ snap[x].token < s.token
                      \/ /\ snap[x].parent # None /\ snap[snap[x].parent].st = "ready"
                         /\ snap[x].parent # s.head
                         /\ Cardinality(Line(snap[x].parent)) < s.gen
                      \/ ~Keeps("AgeProvesNothing")
       IN snap' = [x \in Snapshots |->
            IF x \in doc.listed /\ snap[x].st # "unused" /\ unseen(x) /\ x # s.head /\ dead(x)
            THEN [snap[x] EXCEPT !.st = "gone"] ELSE snap[x]]
    /\ UNCHANGED <<reg, flights, at, belief, disk, given, left>>
Next ==
    \/ \E p \in Sessions :
         \/ \E op \in {"acquire", "renew", "release"} : Begin(p, op)
         \/ \E x \in Snapshots : Bind(p, x)
         \/ Read(p) \/ Cas(p) \/ GiveUp(p) \/ Show(p) \/ Fellow(p) \/ Crash(p) \/ Order(p)
         \/ (at[p].pc = "failed" /\ Failed(p))
         \/ Ages(p, "live", "lapsed") \/ Ages(p, "lapsed", "over")
    \/ \E f \in flights : Land(f)
    \/ Unfreeze \/ PowerCut \/ Flush \/ DoctorReads \/ DoctorRemoves
Spec == Init /\ [][Next]_vars
-------------------------------------------------------------------------------
(* What must always hold.                                                     *)
Committed(x) == snap[x].under > 0
TokensGrantedOnce == ~given.twice     \* and each is above those before it
BelieversHold ==    \* whoever believes is whom the register names: so there is one
    Clocks => \A p \in Sessions : belief[p].lease # "over" =>
        reg.hold = "held" /\ reg.holder = p /\ reg.token = belief[p].token
LineageIsWhole ==   \* all commits are on one line, each under the token it was begun under
    /\ \A x \in Snapshots : Committed(x) => x \in Line(reg.head) /\ snap[x].under = snap[x].token
    /\ Cardinality(Line(reg.head)) = reg.gen
TokensNeverFallOnIt ==
    \A x \in Line(reg.head) : snap[x].parent # None => snap[x].token >= snap[snap[x].parent].token
PublishedIsVisible ==
    \A x \in Snapshots : snap[x].told = "published" => Committed(x) /\ snap[x].st = "ready"
FailedIsNowhere ==
    \A x \in Snapshots : snap[x].told = "failed" => ~Committed(x) /\ snap[x].st # "ready"
VisibleIsCommitted == \A x \in Snapshots : snap[x].st = "ready" => Committed(x)
CommittedStays == \A x \in Snapshots : Committed(x) => snap[x].st # "gone"
AncestorsAreVisible == \A x \in Line(reg.head) : x # reg.head => snap[x].st = "ready"
\* Every move of the register is a step that an audit log may show.
StepsAreLegal == [][\/ Same(reg, reg', {"token", "hold", "holder", "gen", "head"})
                    \/ (reg' = disk /\ left' # left)
                    \/ \E kind \in {"acquire", "steal", "transfer", "freeze", "unfreeze", "renew",
                                    "release", "publish"} : Step(kind, reg, reg')]_reg
===============================================================================
