package llm

import (
	"maps"
	"strings"
)

// Price is the price of a million tokens, in US dollars.
type Price struct {
	Input      float64 `toml:"input"`
	Output     float64 `toml:"output"`
	CacheRead  float64 `toml:"cache_read"`
	CacheWrite float64 `toml:"cache_write"`
}

// knownPrices are list prices, by prefix of a model's name.
var knownPrices = map[string]Price{
	"claude-fable-5-1":  {10, 50, 0.25, 12.5},
	"claude-fable":      {10, 50, 1, 12.5},
	"claude-mythos-5-1": {10, 50, 0.25, 12.5},
	"claude-mythos":     {10, 50, 1, 12.5},
	"claude-opus-5-5":   {4, 20, 0.2, 5},
	"claude-opus":       {5, 25, 0.5, 6.25},
	"claude-sonnet-5-5": {2, 10, 0.1, 2.5},
	"claude-sonnet-5":   {2, 10, 0.2, 2.5},
	"claude-sonnet":     {3, 15, 0.3, 3.75},
	"claude-haiku-5-5":  {0.1, 0.5, 0.01, 0.125},
	"claude-haiku":      {1, 5, 0.1, 1.25},
	"gpt-4.1":           {2, 8, 0.5, 0},
	"gpt-4.1-mini":      {0.4, 1.6, 0.1, 0},
	"gpt-4.1-nano":      {0.1, 0.4, 0.025, 0},
	"gpt-4o":            {2.5, 10, 1.25, 0},
	"gpt-4o-mini":       {0.15, 0.6, 0.075, 0},
	"gpt-5":             {1.25, 10, 0.125, 0},
	"gpt-5-mini":        {0.25, 2, 0.025, 0},
	"gpt-5-nano":        {0.05, 0.4, 0.005, 0},
	"gpt-5-pro":         {15, 120, 15, 0},
	"gpt-5.1":           {1.25, 10, 0.125, 0},
	"o3":                {2, 8, 0.5, 0},
	"o3-mini":           {1.1, 4.4, 0.55, 0},
	"o4-mini":           {1.1, 4.4, 0.275, 0},
}

type prices map[string]Price

func priceList(own map[string]Price) prices {
	all := maps.Clone(knownPrices)
	maps.Copy(all, own)
	return all
}

// IsPriced reports whether the price of a model is known, from the list or from own ones.
func IsPriced(model string, own map[string]Price) bool {
	_, known := priceList(own).of(model)
	return known
}

// of returns the price of a model; the longest matching prefix decides. A known price is
// not that of a later version: gpt-5 is not gpt-5.9.
func (p prices) of(model string) (Price, bool) {
	best := ""
	for name := range p {
		rest, begins := strings.CutPrefix(model, name)
		if _, listed := knownPrices[name]; listed && strings.HasPrefix(rest, ".") {
			continue
		}
		if begins && len(name) > len(best) {
			best = name
		}
	}
	price, known := p[best]
	return price, known
}

// cost returns the cost of usage with a model; 0 if its price is not known.
func (p prices) cost(model string, u Usage) float64 {
	price, _ := p.of(model)
	return (float64(u.Input)*price.Input + float64(u.Output)*price.Output +
		float64(u.CacheRead)*price.CacheRead + float64(u.CacheWrite)*price.CacheWrite) / 1e6
}
