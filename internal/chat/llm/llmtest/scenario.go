package llmtest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Parse reads a scenario: answers separated by lines of ---. Each line is a keyword and
// its arguments. Text in double quotes may contain escapes such as \
// .
//
//	expect WORDS      the last message must contain them
//	system WORDS      the system prompt must
//	offer NAME        the tool must be offered
//	think TEXT        thought before anything is said
//	say TEXT          a piece of text; several are pieces of one text
//	echo              say what the last message says
//	use NAME JSON     ask for a tool
//	stop REASON       such as refusal or max_tokens
//	status 529 KIND TEXT   refuse the request
//	after SECONDS     with Retry-After
//	error KIND TEXT   an error in the middle of the answer
//	ping              pings between all events
//	break             the connection ends before the answer does
//	half              the answer ends in the middle of an event
//	slow              every byte is sent on its own
//
// Empty lines and lines that begin with # are ignored.
func Parse(text string) ([]Step, error) {
	var steps []Step
	var step Step
	for n, line := range strings.Split(text+"\n---", "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if line == "---" {
			steps = append(steps, step)
			step = Step{}
			continue
		}
		if err := step.read(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return steps, nil
}

func (s *Step) read(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	rest, err := unquoted(strings.TrimSpace(rest))
	if err != nil {
		return err
	}
	switch word {
	case "expect":
		s.Expect = append(s.Expect, rest)
	case "system":
		s.System = append(s.System, rest)
	case "offer":
		s.Offer = append(s.Offer, rest)
	case "think":
		s.Think = rest
	case "say":
		s.Say = append(s.Say, rest)
	case "echo":
		s.Echo = true
	case "use":
		name, input, _ := strings.Cut(rest, " ")
		if input != "" && !json.Valid([]byte(input)) {
			return fmt.Errorf("the input of %s is not JSON", name)
		}
		s.Use = append(s.Use, Use{Name: name, Input: input})
	case "stop":
		s.Stop = rest
	case "status":
		code, why, _ := strings.Cut(rest, " ")
		s.Status, err = strconv.Atoi(code)
		s.Kind, s.Text, _ = strings.Cut(why, " ")
	case "after":
		s.RetryAfter = rest
	case "error":
		s.Kind, s.Text, _ = strings.Cut(rest, " ")
	case "ping":
		s.Ping = true
	case "break":
		s.Break = true
	case "half":
		s.Half = true
	case "slow":
		s.Slow = true
	default:
		err = fmt.Errorf("no word %q", word)
	}
	return err
}

func unquoted(text string) (string, error) {
	if strings.HasPrefix(text, `"`) {
		return strconv.Unquote(text)
	}
	return text, nil
}
