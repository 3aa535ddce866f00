-------------------------------- MODULE Alone ---------------------------------
(* Nobody is kept out for ever (LOCK-20): at any moment, whatever is under way, *)
(* all sessions but one may die, and nothing goes wrong any more. Renames that  *)
(* were sent before may still land. The one that is left gets the lock, again   *)
(* whenever its lease is over, provided that it goes on and time passes.        *)
EXTENDS Lock
VARIABLE lone           \* who is left, or None
\* For the one that is left there is a token.
Spared == reg'.token < MaxToken /\ \A p \in Sessions : at'[p].to # None => at'[p].to.token < MaxToken
LeftAlone(p) ==
    /\ lone = None /\ at[p].pc # "dead" /\ lone' = p
    /\ at' = [q \in Sessions |-> IF q = p THEN at[p] ELSE [Idle EXCEPT !.pc = "dead"]]
    /\ belief' = [q \in Sessions |-> IF q = p THEN belief[p] ELSE NoBelief]
    /\ left' = [f \in DOMAIN left |-> 0] /\ UNCHANGED <<reg, flights, snap, doc, disk, given>>
GoesOn(p) == Begin(p, "acquire") \/ Read(p) \/ Cas(p) \/ Show(p) \/ (at[p].pc = "failed" /\ Failed(p))
TimePasses == \E p \in Sessions : Ages(p, "live", "lapsed") \/ Ages(p, "lapsed", "over")
GoesOnAlone == lone # None /\ GoesOn(lone) /\ UNCHANGED lone
AgesAlone == lone # None /\ TimePasses /\ UNCHANGED lone
StepAlone ==
    \/ lone = None /\ Next /\ Spared /\ UNCHANGED lone
    \/ \E p \in Sessions : LeftAlone(p)
    \/ GoesOnAlone \/ AgesAlone
    \/ lone # None /\ (GiveUp(lone) \/ Unfreeze \/ \E f \in flights : Land(f)) /\ UNCHANGED lone
SpecAlone == /\ Init /\ lone = None /\ [][StepAlone]_<<vars, lone>>
             /\ WF_<<vars, lone>>(GoesOnAlone) /\ WF_<<vars, lone>>(AgesAlone)
             /\ WF_<<vars, lone>>(lone # None /\ Unfreeze /\ UNCHANGED lone)
Gets == \A p \in Sessions : lone = p ~>
    belief[p].token > 0 /\ belief[p].lease # "over" /\ HeldBy(reg, p, belief[p].token)
===============================================================================
