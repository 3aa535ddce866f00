-------------------------------- MODULE Holds ---------------------------------
(* Several processes of one session share a hold, beside a rival: who may be   *)
(* told "you hold it", and who gives it back (spec/holds.md, H-1 to H-5, H-8). *)
(* The register is CAS alone; what a rename's answer means is in Lock. As      *)
(* there, a name that was looked at or READ and is gone is known as outdated.  *)
EXTENDS Register, FiniteSets, TLC
CONSTANTS
    Runs, Acquirers,    \* the session's commands: those that work, those that say "I know"
    MaxToken, Crashes, Off
Keeps(rule) == rule \notin Off
Succ(n) == n + 1
Symmetry == Permutations(Runs) \cup Permutations(Acquirers)
Processes == Runs \cup Acquirers
Mine == "session"       Rival == "rival"
VARIABLES
    reg,    \* the register
    name,   \* the hold's name: [token, st], st: open, ending, released or lost
    loss,   \* the file that keeps a loss until an acquire has answered
    at,     \* of each process: [pc, token, stake, saw, read]. stake: -1 none, 0 none yet, or
            \* its token; saw, read: is what it looked at, or READ, still so?
    told,   \* of each process: the token that it relies on, or 0
    ghost,  \* stolen: the newest token that the rival took; newest: that somebody was told of;
            \* behind: one that was told of was taken, and nobody said to know;
            \* lied, unaware: was somebody told what he must not be told?
    left
vars == <<reg, name, loss, at, told, ghost, left>>
Start == [pc |-> "idle", token |-> 0, stake |-> 0 - 1, saw |-> FALSE, read |-> FALSE]
Init ==
    /\ reg = Birth /\ name = [token |-> 0, st |-> "released"] /\ loss = FALSE
    /\ at = [p \in Processes |-> Start] /\ told = [p \in Processes |-> 0]
    /\ ghost = [stolen |-> 0, newest |-> 0, behind |-> FALSE, lied |-> FALSE, unaware |-> FALSE]
    /\ left = Crashes
HeldAt(t) == reg.hold = "held" /\ reg.holder = Mine /\ reg.token = t
Live == {p \in Processes : at[p].pc # "dead"}
Resumable == name.st = "open" \/ (name.st = "ending" /\ ~Keeps("EndingIsNotResumed"))
Behind(s) == name.st # "released" /\ name.token # s.token /\ Keeps("SessionsRemember")     \* H-8
\* How a step leaves p, and what the others know of name and register after it.
Goes(p, a, named, moved) == at' = [q \in Processes |-> IF q = p THEN a
    ELSE [at[q] EXCEPT !.saw = @ /\ ~named, !.read = @ /\ ~moved]]
Quiet(p, a) == Goes(p, a, FALSE, FALSE)
-------------------------------------------------------------------------------
(* H-1, join: look at name and stakes, place one's own, move the name.        *)
Look(p) ==
    /\ at[p].pc = "idle" /\ told[p] = 0
    /\ p \in Runs /\ Keeps("RunsLookAtStakes") => \A q \in Live \cap Runs : at[q].stake = 0 - 1  \* H-4
    /\ p \in Runs => ~loss /\ (Keeps("MemoryAfterRead") \/ ~Behind(reg))
    /\ Quiet(p, [Start EXCEPT !.pc = "place", !.saw = TRUE, !.token = IF Resumable THEN name.token ELSE 0])
    /\ UNCHANGED <<reg, name, loss, told, ghost, left>>
Place(p) ==
    /\ at[p].pc = "place"
    /\ Quiet(p, [at[p] EXCEPT !.pc = "join", !.stake = IF Keeps("StakeComesFirst") THEN at[p].token ELSE @])
    /\ UNCHANGED <<reg, name, loss, told, ghost, left>>
Join(p) ==
    /\ at[p].pc = "join"
    /\ LET in == [at[p] EXCEPT !.pc = IF at[p].token > 0 THEN "confirm" ELSE "read"]
           named == Keeps("JoinMovesTheName") IN
       IF at[p].saw \/ ~named
       THEN /\ Goes(p, in, named, FALSE)
            /\ name' = IF at[p].token > 0 /\ at[p].saw THEN [name EXCEPT !.st = "open"] ELSE name
       ELSE Quiet(p, Start) /\ UNCHANGED name
    /\ UNCHANGED <<reg, loss, told, ghost, left>>
-------------------------------------------------------------------------------
(* H-3, told: by a CAS of one's own, once one's stake is in an open hold.     *)
Tell(p, t) ==
    /\ told' = [told EXCEPT ![p] = t] /\ loss' = (loss /\ p \in Runs)
    /\ ghost' = [ghost EXCEPT !.lied = @ \/ ~HeldAt(t), !.behind = @ /\ p \in Runs, !.newest = t,
                              !.unaware = @ \/ (ghost.behind /\ p \in Runs)]
Confirm(p) ==
    /\ at[p].pc = "confirm"
    /\ LET t == at[p].token in == [at[p] EXCEPT !.pc = "idle", !.stake = t] IN
       CASE HeldAt(t) /\ Keeps("ConfirmedByOwnCas") ->
              Tell(p, t) /\ Goes(p, in, FALSE, TRUE) /\ UNCHANGED <<name>>
         [] HeldAt(t) -> Quiet(p, [in EXCEPT !.pc = "tell"]) /\ UNCHANGED <<name, loss, told, ghost>>
         [] OTHER -> \* gone from the register: who finds that marks it
              /\ name' = IF name.token = t /\ name.st = "open" THEN [name EXCEPT !.st = "lost"] ELSE name
              /\ Goes(p, Start, name' # name, FALSE) /\ UNCHANGED <<loss, told, ghost>>
    /\ UNCHANGED <<reg, left>>
TellAtLast(p) == at[p].pc = "tell" /\ Tell(p, at[p].token) /\ Quiet(p, [at[p] EXCEPT !.pc = "idle"])
                 /\ UNCHANGED <<reg, name, left>>
Read(p) ==      \* free, abandoned by the rival, or one's own that is ending: its term is burnt
    /\ at[p].pc = "read" /\ Quiet(p, [at[p] EXCEPT !.pc = "gate", !.read = TRUE])
    /\ UNCHANGED <<reg, name, loss, told, ghost, left>>
Gate(p) ==      \* between the READ and the CAS the hold is looked at again
    /\ at[p].pc = "gate"
    /\ LET opened == name.st = "open" /\ name.token = reg.token /\ Keeps("LookAfterRead")
           refused == p \in Runs /\ Keeps("MemoryAfterRead") /\ (Behind(reg) \/ loss) IN
       Quiet(p, IF ~at[p].read THEN [at[p] EXCEPT !.pc = "read"]
                ELSE IF opened \/ refused THEN Start ELSE [at[p] EXCEPT !.pc = "cas"])
    /\ UNCHANGED <<reg, name, loss, told, ghost, left>>
Cas(p) ==
    /\ at[p].pc = "cas" /\ reg.token < MaxToken
    /\ IF at[p].read
       THEN reg' = Granted(reg, Mine) /\ Goes(p, [at[p] EXCEPT !.pc = "open", !.token = reg.token + 1], FALSE, TRUE)
       ELSE Quiet(p, [at[p] EXCEPT !.pc = "read"]) /\ UNCHANGED reg
    /\ UNCHANGED <<name, loss, told, ghost, left>>
Open(p) ==
    /\ at[p].pc = "open"
    /\ IF name.token < at[p].token
       THEN /\ name' = [token |-> at[p].token, st |-> "open"]
            /\ loss' = (loss \/ (Keeps("LossIsKeptUntilAnswered") /\ name.st # "released" /\ name.token + 1 < at[p].token))
            /\ Goes(p, [at[p] EXCEPT !.pc = "confirm", !.stake = IF Keeps("StakeComesFirst") THEN at[p].token ELSE @], TRUE, FALSE)
       ELSE Quiet(p, Start) /\ UNCHANGED <<name, loss>>
    /\ UNCHANGED <<reg, told, ghost, left>>
-------------------------------------------------------------------------------
(* H-2, the end: when no live stake carries the token. Whoever finds it ends it. *)
Leave(p) ==
    /\ told[p] > 0 /\ told' = [told EXCEPT ![p] = 0] /\ Quiet(p, Start)
    /\ UNCHANGED <<reg, name, loss, ghost, left>>
End(p) ==
    /\ at[p].pc = "idle" /\ told[p] = 0
    /\ \/ /\ name.st = "open"
          /\ Keeps("StakesKeepAHold") => \A q \in Live : at[q].stake # name.token
          /\ Quiet(p, [Start EXCEPT !.pc = "end", !.saw = TRUE, !.token = name.token])
       \/ name.st = "ending" /\ Quiet(p, [Start EXCEPT !.pc = "release", !.token = name.token])
    /\ UNCHANGED <<reg, name, loss, told, ghost, left>>
EndMove(p) ==
    /\ at[p].pc = "end"
    /\ IF at[p].saw THEN name' = [name EXCEPT !.st = "ending"] /\ Goes(p, [at[p] EXCEPT !.pc = "release"], TRUE, FALSE)
       ELSE Quiet(p, Start) /\ UNCHANGED name
    /\ UNCHANGED <<reg, loss, told, ghost, left>>
Release(p) ==
    LET t == at[p].token mine == HeldAt(IF Keeps("BoundToItsHold") THEN t ELSE reg.token)
        confirmed == mine \/ (reg.hold = "free" /\ reg.token = t) \/ ~Keeps("OnlyConfirmedIsReleased") IN
    /\ at[p].pc = "release" /\ reg' = IF mine THEN Released(reg) ELSE reg
    /\ Goes(p, IF confirmed THEN [at[p] EXCEPT !.pc = "settle"] ELSE Start, FALSE, mine)
    /\ UNCHANGED <<name, loss, told, ghost, left>>
Settle(p) ==
    LET ended == name.token = at[p].token /\ name.st = "ending" IN
    /\ at[p].pc = "settle" /\ name' = IF ended THEN [name EXCEPT !.st = "released"] ELSE name
    /\ Goes(p, Start, ended, FALSE) /\ UNCHANGED <<reg, loss, told, ghost, left>>
-------------------------------------------------------------------------------
RivalMoves ==   \* takes it if it is free or the lease is over, which may be at any moment
    /\ \/ /\ reg.token < MaxToken /\ reg.holder # Rival /\ reg' = Granted(reg, Rival)
          /\ ghost' = IF reg.holder = Mine THEN [ghost EXCEPT !.stolen = reg.token, !.behind = @ \/ reg.token = ghost.newest] ELSE ghost
       \/ reg.holder = Rival /\ reg' = Released(reg) /\ UNCHANGED ghost
    /\ at' = [p \in Processes |-> [at[p] EXCEPT !.read = FALSE]] /\ UNCHANGED <<name, loss, told, left>>
Crash(p) ==
    /\ left > 0 /\ left' = left - 1 /\ at[p].pc # "dead"
    /\ Quiet(p, [at[p] EXCEPT !.pc = "dead"]) /\ told' = [told EXCEPT ![p] = 0]
    /\ UNCHANGED <<reg, name, loss, ghost>>
Next == RivalMoves \/ \E p \in Processes :
    \/ Look(p) \/ Place(p) \/ Join(p) \/ Confirm(p) \/ TellAtLast(p) \/ Read(p) \/ Gate(p) \/ Cas(p)
    \/ Open(p) \/ Leave(p) \/ End(p) \/ EndMove(p) \/ Release(p) \/ Settle(p) \/ Crash(p)
Spec == Init /\ [][Next]_vars
-------------------------------------------------------------------------------
\* Whoever was told holds, unless the rival took it: nobody of the session gives it away.
ToldIsTrue == ~ghost.lied /\ \A p \in Processes : told[p] > 0 => HeldAt(told[p]) \/ told[p] <= ghost.stolen
RunsAreAlone == Cardinality({p \in Runs : told[p] > 0}) <= 1
LossesAreKnown == ~ghost.unaware    \* nobody works over a successor whom the session does not know of
===============================================================================
