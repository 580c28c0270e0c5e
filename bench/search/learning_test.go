package main

import (
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// worded is our set of questions with three wordings each.
func worded(t *testing.T) set {
	t.Helper()
	tools, err := corpus()
	if err != nil {
		t.Fatal(err)
	}
	sets, err := ownSets(tools)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets {
		if s.worded() {
			return s
		}
	}
	t.Fatal("no set has wordings")
	return set{}
}

// TestSearchGetsBetterWithUse checks that questions find more after a caller has asked them
// in other words, that other questions find no less, and that nobody else notices.
func TestSearchGetsBetterWithUse(t *testing.T) {
	t.Parallel()
	sim, err := simulate(t.Context(), worded(t), dbtest.Open(t, dbtest.SQLite(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.store.Close)
	used, others := halves(sim.set.asked[:60])
	user, stranger := as("key:user"), as("key:stranger")
	before, beforeOthers := sim.figures(user, used), sim.figures(user, others)
	if err := sim.use(user, used, caller{first: 1}); err != nil {
		t.Fatal(err)
	}
	reworded := sim.figures(user, used)
	if err := sim.use(user, used, caller{}); err != nil {
		t.Fatal(err)
	}
	after, afterOthers := sim.figures(user, used), sim.figures(user, others)
	t.Logf("asked before: any@5 %.3f, in other words %.3f, then %.3f; MRR %.3f, %.3f, %.3f", mean(before.any5), mean(reworded.any5), mean(after.any5), mean(before.mrr), mean(reworded.mrr), mean(after.mrr))
	t.Logf("never asked: any@5 %.3f, then %.3f; MRR %.3f, then %.3f", mean(beforeOthers.any5), mean(afterOthers.any5), mean(beforeOthers.mrr), mean(afterOthers.mrr))
	if mean(reworded.any5)+mean(reworded.mrr) < mean(before.any5)+mean(before.mrr)+0.02 || mean(after.any5) < mean(before.any5)+0.05 || mean(after.mrr) < mean(before.mrr)+0.15 {
		t.Error("use has not made the search better")
	}
	if mean(afterOthers.any5) < mean(beforeOthers.any5)-0.03 || mean(afterOthers.mrr) < mean(beforeOthers.mrr)-0.03 {
		t.Error("use has made other searches worse")
	}
	if got := sim.figures(stranger, used); mean(got.mrr) != mean(before.mrr) {
		t.Errorf("a stranger's MRR was %.3f and is %.3f", mean(before.mrr), mean(got.mrr))
	}
}

// TestHarmfulUseHarmsNobodyElse checks that a caller who calls wrong tools after every
// search changes nothing for others.
func TestHarmfulUseHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	sim, err := simulate(t.Context(), worded(t), dbtest.Open(t, dbtest.SQLite(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.store.Close)
	asked, _ := halves(sim.set.asked[:60])
	user, harmful := as("key:user"), as("key:harmful")
	before := sim.figures(user, asked)
	for wording := range 3 {
		if err := sim.use(harmful, asked, caller{first: wording, harmful: true}); err != nil {
			t.Fatal(err)
		}
	}
	if own := sim.figures(harmful, asked); mean(own.mrr) >= mean(before.mrr) {
		t.Errorf("the simulation does no harm: MRR %.3f, before %.3f", mean(own.mrr), mean(before.mrr))
	}
	if after := sim.figures(user, asked); !slices.Equal(after.mrr, before.mrr) {
		t.Errorf("MRR was %.3f and is %.3f", mean(before.mrr), mean(after.mrr))
	}
}
