package main

import (
	"fmt"
	"math"
	"time"
)

// table prints rows and collects the ratios for the means.
type table struct {
	turns    int
	toRef    []float64 // ours to the reference
	toGopher []float64 // gopher-lua to ours
	budgets  []float64 // with budgets to without
	notes    []string
}

const rowFormat = "| %-10s | %8s | %8s | %6s | %7s | %10s | %11s |\n"

func (t *table) head(engines [columns]engine) {
	fmt.Printf("Milliseconds of CPU time, user and system, best of %d turns; the reference is %s.\n\n", t.turns, engines[reference].name)
	fmt.Printf(rowFormat, "program", "lua5.4", "ours", "ratio", "budgets", "gopher-lua", "gopher/ours")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|")
}

func (t *table) add(name string, row [columns]result, cost float64) {
	slowdown := ratio(row[ours], row[reference])
	t.toRef, t.budgets = append(t.toRef, slowdown), append(t.budgets, cost)
	slow, factor := "–", "–"
	if failed := row[gopher].failed; failed != "" {
		t.notes = append(t.notes, fmt.Sprintf("gopher-lua, which is Lua 5.1, left out of %s: %s", name, failed))
	} else {
		f := ratio(row[gopher], row[ours])
		t.toGopher = append(t.toGopher, f)
		slow, factor = milliseconds(row[gopher]), fmt.Sprintf("%.2f", f)
	}
	fmt.Printf(rowFormat, name, milliseconds(row[reference]), milliseconds(row[ours]), fmt.Sprintf("%.2f", slowdown),
		percent(cost), slow, factor)
}

// foot prints the geometric means and why numbers are missing.
func (t *table) foot() {
	fmt.Printf(rowFormat, "mean", "", "", fmt.Sprintf("%.2f", mean(t.toRef)), percent(mean(t.budgets)), "",
		fmt.Sprintf("%.2f", mean(t.toGopher)))
	fmt.Println()
	for _, note := range t.notes {
		fmt.Println(note)
	}
}

func ratio(a, b result) float64 { return float64(a.best) / float64(b.best) }

func milliseconds(r result) string { return fmt.Sprint(r.best.Round(time.Millisecond).Milliseconds()) }

// percent is the difference of a ratio from 1, in percent.
func percent(ratio float64) string { return fmt.Sprintf("%+.1f %%", 100*(ratio-1)) }

// mean is the geometric mean.
func mean(ratios []float64) float64 {
	sum := 0.0
	for _, r := range ratios {
		sum += math.Log(r)
	}
	return math.Exp(sum / float64(len(ratios)))
}
