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
}

type prices map[string]Price

func priceList(own map[string]Price) prices {
	all := maps.Clone(knownPrices)
	maps.Copy(all, own)
	return all
}

// cost returns the cost of usage with a model; the longest matching prefix decides.
func (p prices) cost(model string, u Usage) float64 {
	best := ""
	for name := range p {
		if strings.HasPrefix(model, name) && len(name) > len(best) {
			best = name
		}
	}
	price := p[best]
	return (float64(u.Input)*price.Input + float64(u.Output)*price.Output +
		float64(u.CacheRead)*price.CacheRead + float64(u.CacheWrite)*price.CacheWrite) / 1e6
}
