#!/usr/bin/env bash
# Breaks the planner on purpose, in one way after the other, and prints after how many simulated worlds tests/sim noticed. A simulator that
# catches nothing proves nothing. Each fault is one sed expression on one file, applied to a copy of the last commit. A fault that no longer
# changes anything is an error, and so is one that no world detects. Those of sizes are for the tests of what decides on them.
#
#   scripts/break-planner.sh                all of them, at most WORLDS (5000) worlds each
#   scripts/break-planner.sh budget hold    those whose names contain a word
set -euo pipefail
cd "$(dirname "$0")/.."
worlds=${WORLDS:-5000}

faults() {
	cat <<'LIST'
expansion-off-by-one|coordinator/plan/heal.go|s/d.budget.expansion()-d.budget.finishing() < b.expansion/d.budget.expansion()-d.budget.finishing() <= b.expansion/
restart-budget-off-by-one|coordinator/plan/roll.go|s/d.budget.unavailable() >= most/d.budget.unavailable() > most/
removal-budget-off-by-one|coordinator/plan/heal.go|s/d.budget.unavailable() >= b.down/d.budget.unavailable() > b.down/
deleting-budget-off-by-one|coordinator/plan/budget.go|s/d.counts.leaving < d.spec.Budget.MaxDeleting/d.counts.leaving <= d.spec.Budget.MaxDeleting/
scale-down-takes-the-room-of-busy-ones|coordinator/plan/scale.go|s/plannedDeletionBlocker(m)/deletionBlocker(m)/
creating-budget-forgotten|coordinator/plan/budget.go|s/d.spec.Budget.MaxCreating == 0 ||/true ||/
return-of-an-agent-not-compared|coordinator/plan/heal.go|s/out := \[\]store.Condition{store.At(keys.Alive(m.ID()), m.Alive.Modified)}/out := []store.Condition{}/
replacement-not-compared|coordinator/plan/settle.go|s/append(m.proof(d.s.Keys), keep.Unchanged(), store.At(d.s.Keys.Alive(keep.ID()), keep.Alive.Modified))/m.proof(d.s.Keys)/
spec-and-hold-not-compared|coordinator/plan/view.go|s/return append(v.specUnchanged(), v.s.Shard.Unchanged())/return nil/
slot-not-compared|coordinator/plan/failures.go|s/a.Conditions = append(a.Conditions, store.At(sl.Key, sl.Modified))//
no-grace|coordinator/plan/judge.go|s/if now.Before(s.GraceEnd) {/if false {/
drain-timer-lost|coordinator/plan/drain.go|s/case !d.now.Before(due):/case false:/
storm-ignored|coordinator/plan/storm.go|s/if d.storm == nil || !m.missed() {/if true {/
protection-ignored|coordinator/plan/scale.go|s/if !slices.ContainsFunc(c.members, .*Protected != "".*{/if true {/
pause-ignored|coordinator/plan/plan.go|s/ && !d.spec.Paused && / \&\& /
replacement-relied-on-before-it-is-healthy|coordinator/plan/budget.go|s/if !m.healthy() {/if m.phase != store.Running {/
no-turns|coordinator/plan/budget.go|s/if !a.Turn {/if true {/
shared-budget-ignored|coordinator/plan/shared_budget.go|s/if d.shared == nil || /if true || /
canaries-off-by-one|coordinator/plan/stages.go|s/range min(r.Canary-len(r.Canaries), len(rest))/range min(r.Canary-len(r.Canaries)+1, len(rest))/
windows-ignored|coordinator/plan/windows.go|s/if len(d.spec.Windows) == 0 {/if true {/
freeze-ignored|coordinator/plan/windows.go|s/if f.At(d.now) {/if f.At(d.now) \&\& false {/
retry-of-a-flapping-slot-never-comes|coordinator/evidence/timers.go|s/return min(whole, max(0, whole-passed))/return 1000*whole + 0*passed/
LIST
}

# What decides on sizes is caught by its own tests: none needs a world.
sizes() {
	cat <<'LIST'
size-missing-number-is-zero|coordinator/query/query.go|s/return 0, false/return 0, true/
size-old-number-counts|coordinator/query/query.go|s/ || now.Sub(r.Asked) > Fresh//
size-unknown-number-shrinks|coordinator/scale/wish.go|s/w.Silent, none = true, false/w.Silent, none = false, false/
size-half-of-the-instances-will-do|coordinator/scale/wish.go|s/case 2\*n.Warm <= number.Of:/case 2*n.Warm < number.Of:/
size-starting-instances-not-counted|coordinator/scale/wish.go|s/unknown, up := n.Missing+onTheWay/unknown, up := n.Missing/
size-lost-instances-not-counted|coordinator/scale/wish.go|s/unknown, up := n.Missing+onTheWay/unknown, up := onTheWay/
size-start-looks-like-load|coordinator/scale/wish.go|s/sum += min(value, mean)/sum += value/
size-shrinks-in-a-storm|coordinator/plan/autoscale.go|s/case d.storms.storm != nil:/case false:/
size-window-forgotten|coordinator/scale/step.go|s/to := max(wanted, s.Largest, /to := max(wanted, /
size-window-not-waited-for-after-silence|coordinator/plan/autoscale.go|s/if wish.Unknown || wish.Silent {/if false {/
size-rate-forgotten|coordinator/scale/step.go|s/ - s.Added; {/; {/
size-drains-without-bound|coordinator/plan/budget.go|s/min(most+d.counts.shed, s.Max+expansion)/most+d.counts.shed/
size-load-that-moves-counts-twice|coordinator/plan/autoscale.go|s/value \*= d.shareThen(.*$/_ = since/
size-drains-carry-nothing|coordinator/scale/wish.go|s/n.Sum + n.Leaving +/n.Sum +/
size-those-that-left-forgotten|coordinator/scale/wish.go|s/+ left\*mean +/+/
size-settling-not-waited-for|coordinator/scale/step.go|s/, s.Largest, spec.Within(wish.Settling))/, s.Largest)/
size-left-at-once|coordinator/plan/autoscale_left.go|s/d.timer(loadMean + d.loadLate())/d.timer(loadMean)/
size-grows-in-the-band|coordinator/scale/wish.go|s/settled: tolerated . 2,/settled: 0,/
size-grown-group-turns|coordinator/scale/wish.go|s/if load.Grew {/if false {/
size-uncertain-growth|coordinator/scale/wish.go|s/up = b.up$/up = b.settled/
size-clocks-ignored|coordinator/plan/schedule.go|s/d.s.ClocksApart >= ClocksApart/false/
size-summer-time-ignored|store/schedule.go|s/if at := firstAt(wall, loc); !at.After(now)/if at := wall; !at.After(now)/
LIST
}

# Numbers from outside, shared budgets and drills are in no world. Graces that outlast a storm's window, and lists and
# boots that come in the one order that matters, are in hardly any. Tests of their own catch these.
changes() {
	cat <<'LIST'
change-storm-forgets-the-grace|coordinator/plan/storm.go|s/return store.Later(since, d.s.GraceEnd)/return since/
change-grace-hides-a-storm|coordinator/plan/storm.go|s/if missed || m.awaitsGrace() {/if missed {/
change-analysis-stops-at-once|coordinator/plan/analysis.go|s/due := d.doubt(a); reading.Asked.Before(due)/due := d.doubt(a); false \&\& reading.Asked.Before(due)/
change-analysis-missing-number-is-good|coordinator/plan/analysis.go|s/d.waitFor(a.From, "no number: "+reading.Missing())/_ = reading/
change-analysis-old-number-is-good|coordinator/plan/analysis.go|s/if d.predatesLastStep(reading) {/if false {/
change-shared-budget-off-by-one|coordinator/plan/shared_budget.go|s/max(sum.Unavailable, sum.Unwell) >= b.most/max(sum.Unavailable, sum.Unwell) > b.most/
change-shared-budget-forgets-drills|coordinator/plan/shared_budget.go|s/(m.drilled || m.Record.Drilled(v.now) \&\& v.now.Before(drillOver(m.Record.Drill, m)))/false/
change-drill-repeated|coordinator/plan/drill_schedule.go|s/m.Record.Drill.Request == mark.Request/false/
change-one-list-proves-absence|coordinator/plan/judge.go|s/case !streamGone || see.Times < 2:/case !streamGone:/
change-record-goes-too-early|coordinator/plan/remove.go|s/if see.Begun.Before(m.Calls.AbsentFrom) {/if false {/
change-restart-repeated-after-another-boot|coordinator/plan/restart.go|s/case r.Boot != "" \&\& m.Alive.Present() \&\& m.Alive.Record.BootID != r.Boot:/case false:/
change-drill-opens-the-breaker|coordinator/plan/breaker.go|s/ \&\& !m.Record.Drilled(d.now)//
LIST
}

tmp=$(mktemp -d)
trap 'git worktree remove --force "$tmp/copy" 2>/dev/null || true; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
git worktree add --quiet --detach "$tmp/copy" HEAD
missed=0
printf '%-46s %s\n' fault 'caught by world'
while IFS='|' read -r name file change; do
	wanted=$((!$#))
	for word in "$@"; do
		[[ $name != *"$word"* ]] || wanted=1
	done
	((wanted)) || continue
	git -C "$tmp/copy" checkout --quiet .
	sed -i "$change" "$tmp/copy/$file"
	if git -C "$tmp/copy" diff --quiet; then
		printf '%-46s %s\n' "$name" 'the planner no longer has this place: correct this script'
		missed=1
		continue
	fi
	if [[ $name == size-* ]]; then
		if (cd "$tmp/copy" && go test ./store ./coordinator/scale ./coordinator/leader ./coordinator/plan ./coordinator/sim \
			-run 'Scale|Size|Schedule|Wish|Step|Numbers|Noise|Load|Growth|RestartsTheWindow|Transcripts' >"$tmp/out" 2>&1); then
			printf '%-46s no test\n' "$name"
			missed=1
		else
			printf '%-46s %s\n' "$name" "$(grep -m1 -oE -e '--- FAIL: [A-Za-z]+' "$tmp/out" || tail -1 "$tmp/out")"
		fi
		continue
	fi
	if [[ $name == change-* ]]; then
		if (cd "$tmp/copy" && go test ./coordinator/plan ./coordinator/sim \
			-run 'Analys|Judge|Share|Drill|Breaker|Grace|RecordOutlives|RestartHasHappened' >"$tmp/out" 2>&1); then
			printf '%-46s no test\n' "$name"
			missed=1
		else
			printf '%-46s %s\n' "$name" "$(grep -m1 -oE -e '--- FAIL: [A-Za-z]+' "$tmp/out" || tail -1 "$tmp/out")"
		fi
		continue
	fi
	if (cd "$tmp/copy" && go test ./tests/sim -run '^TestWorlds$' -worlds "$worlds" >"$tmp/out" 2>&1); then
		printf '%-46s none of %s\n' "$name" "$worlds"
		missed=1
	elif seed=$(grep -oE 'seed [0-9]+: after' "$tmp/out" | awk '{print $2 + 0}' | sort -n | head -1) && [[ -n $seed ]]; then
		why=$(grep -m1 -oE "seed $seed: .*" "$tmp/out" | sed 's/.*virtual time: //' | cut -c1-110)
		printf '%-46s %s: %s\n' "$name" "$seed" "$why"
	else
		printf '%-46s %s\n' "$name" 'the run failed otherwise:'
		tail -5 "$tmp/out"
		missed=1
	fi
done < <(faults; sizes; changes)
exit "$missed"
