package hootenanny

import "github.com/luanette/luanette/internal/tools/modelspec"

// anticipatorySpecs are the tools of the Anticipatory Music Transformer. Its service is
// described as one that is configured would be.
func anticipatorySpecs(address string) map[string]modelspec.Spec {
	number := func(least, most, otherwise float64, about string) modelspec.Argument {
		return modelspec.Argument{Type: "number", Min: &least, Max: &most, Default: otherwise, Description: about}
	}
	integer := func(least, most, otherwise float64, about string) modelspec.Argument {
		a := number(least, most, otherwise, about)
		a.Type = "integer"
		return a
	}
	size := modelspec.Argument{Type: "string", Values: []string{"small", "medium", "large"}, Default: "small", Description: "size of the model"}
	input := modelspec.Argument{Type: "midi", Field: "midi_input", Required: true, Description: "what to begin from"}
	sampling := func(more map[string]modelspec.Argument) map[string]modelspec.Argument {
		more["length_seconds"] = number(1, 120, 20, "seconds of new music")
		more["top_p"] = number(0.1, 1, 0.95, "nucleus sampling: probability mass to choose from")
		more["num_variations"] = integer(1, 5, 1, "how many")
		more["model_size"] = size
		return more
	}
	return map[string]modelspec.Spec{
		"anticipatory_generate": {
			URL: address + "/predict", Title: "Generate polyphonic MIDI", Result: modelspec.MIDI, Send: map[string]any{"task": "generate"},
			Description: "Starts a job in which the Anticipatory Music Transformer generates polyphonic music. The result has a MIDI artifact for each variation.",
			Arguments:   sampling(map[string]modelspec.Argument{}),
		},
		"anticipatory_continue": {
			URL: address + "/predict", Title: "Continue polyphonic MIDI", Result: modelspec.MIDI, Send: map[string]any{"task": "continue"},
			Description: "Starts a job in which the Anticipatory Music Transformer continues the first seconds of a MIDI file.",
			Arguments: sampling(map[string]modelspec.Argument{
				"input_hash": input, "prime_seconds": number(1, 60, 5, "seconds of the file that the music follows"),
			}),
		},
		"anticipatory_embed": {
			URL: address + "/predict", Title: "Embed MIDI", Result: modelspec.Analysis, Expects: []string{"embedding"}, Timeout: "1m", Send: map[string]any{"task": "embed"},
			Description: "Starts a job in which the Anticipatory Music Transformer computes an embedding of a MIDI file, to compare it with others.",
			Arguments: map[string]modelspec.Argument{
				"input_hash": input, "model_size": size, "embed_layer": integer(-12, -1, -3, "layer of the model"),
			},
		},
	}
}
