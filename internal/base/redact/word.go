package redact

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// shortestWord is the length of the shortest word that may be a token.
const shortestWord = 16

// wordByte has the bytes that words are made of.
var wordByte = func() (in [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/=.") {
		in[c] = true
	}
	return in
}()

// words finds tokens and words that look random.
func (s *spans) words(text string) {
	for from := 0; from < len(text); {
		if !wordByte[text[from]] {
			from++
			continue
		}
		to := from
		for to < len(text) && wordByte[text[to]] {
			to++
		}
		if to-from >= shortestWord && !s.covers(from, to) {
			s.word(text, from, to)
		}
		from = to
	}
}

// word hides a token, or the parts of a word that look random.
func (s *spans) word(text string, from, to int) {
	word := strings.TrimRight(text[from:to], ".")
	switch {
	case isToken(word), isBotToken(text, from, word), isWebhook(word):
		s.add(from, from+len(word))
	default:
		for part := range strings.FieldsFuncSeq(word, func(r rune) bool { return r == '.' || r == '=' }) {
			if looksSecret(part) && !isPath(word) && !isData(text, from, word) {
				at := from + strings.Index(word, part)
				s.add(at, at+len(part))
			}
		}
	}
}

// tokenPrefixes are the prefixes of tokens of well-known services, by their first two
// bytes. What follows is at least 12 bytes.
var tokenPrefixes = group(strings.Fields(`
	AKIA ASIA ABIA ACCA ABSK AIza ya29. GOCSPX- AQ.Ab LTAI AKID
	sk- sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ pk-lf- whsec_ sess-
	ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glagent- GR1348941
	xoxb- xoxp- xoxa- xoxr- xoxs- xoxe. xoxe- xapp- xwfp-
	npm_ pypi-AgE rubygems_ cio dckr_pat_ dckr_oat_ CLOJARS_ oy2
	hf_ api_org_ r8_ gsk_ xai- pplx- tgp_v1_ nvapi- fw_ jina_ tvly- fc- e2b_ pcsk_ lsv2_pt_ lsv2_sk_ csk-
	SG. key- xkeysib- re_ mlsn. shpat_ shpss_ shpca_ shppa_ sq0atp- sq0csp- EAAA EAACEdEose access_token$
	dop_v1_ doo_v1_ dor_v1_ dapi lin_api_ lin_oauth_ secret_ ntn_ figd_ PMAK- hvs. hvb. hvr. ops_
	AGE-SECRET-KEY-1 NRAK- NRII- NRJS- NRAL- glsa_ glc_ dt0c01. sntrys_ sntryu_ sntryi_ phx_ phc_
	pscale_tkn_ pscale_pw_ pscale_oauth_ sbp_ sb_secret_ rdme_ rnd_ fm1_ fm2_ fo1_ nfp_ CFPAT- dp.pt. dp.st. dp.ct. dp.sa. tskey-auth- tskey-client- tskey-api-
	EZAK EZTK shippo_live_ shippo_test_ duffel_live_ duffel_test_ FLWSECK- FLWSECK_TEST- rzp_live_ rzp_test_
	ATATT3 ATBB ATCTT3 AKCp cmVmdGtu CCIPAT_ bkua_ sgp_ signkey-prod- eyJ A3- v1.0- luan_ ctx7sk- mcp_ apify_api_ oat_ vlt_ ddp_ ddapp_ napi_ vcp_ vck_
`))

func group(prefixes []string) map[string][]string {
	byStart := map[string][]string{}
	for _, p := range prefixes {
		byStart[p[:2]] = append(byStart[p[:2]], p)
	}
	return byStart
}

// isToken reports whether a word has the form of a service's token.
func isToken(word string) bool {
	for _, prefix := range tokenPrefixes[word[:2]] {
		if rest, ok := strings.CutPrefix(word, prefix); ok && len(rest) >= 12 && (isRandom(rest) || isAlways(prefix, word)) {
			return true
		}
	}
	return strings.Contains(word, ".atlasv1.") || isDotted(word)
}

// isAlways reports prefixes after which no name comes: capitals and digits after the
// one, numbers after the other.
func isAlways(prefix, word string) bool {
	return (prefix == "AKIA" || prefix == "ASIA" || prefix == "A3-") && strings.ToUpper(word) == word || strings.HasPrefix(prefix, "xox") && hasDigit(word)
}

// isRandom reports whether the rest of a token is no ordinary name, as "learn-tutorial-2"
// after "sk-" is.
func isRandom(rest string) bool {
	for part := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == '-' || r == '_' || r == '.' }) {
		if len(part) >= 10 && isRandomPart(part) {
			return true
		}
	}
	digits := countDigits(rest)
	return (digits >= 4 && digits*3 < len(rest)*2 || digits >= 2 && hasBothCases(rest)) && !wordLike(rest)
}

func isRandomPart(part string) bool {
	switch digits := countDigits(part); {
	case digits == len(part):
		return false
	case digits >= 3:
		return true
	case digits > 0:
		return !wordLike(part)
	default:
		return hasBothCases(part) && !wordLike(part)
	}
}

func countDigits(word string) (n int) {
	for i := range len(word) {
		n += b2i(isDigit(word[i]))
	}
	return n
}

// isDotted reports tokens of three parts: those of Discord.
func isDotted(word string) bool {
	parts := strings.Split(word, ".")
	return len(parts) == 3 && len(parts[0]) >= 23 && len(parts[0]) <= 28 && len(parts[1]) == 6 && len(parts[2]) >= 27 && len(parts[2]) <= 38 &&
		strings.IndexByte("MNO", parts[0][0]) >= 0 && hasDigit(parts[2])
}

// isBotToken reports what follows the colon in a token of Telegram.
func isBotToken(text string, from int, word string) bool {
	digits := 0
	for at := from - 2; from > 1 && text[from-1] == ':' && at >= 0 && isDigit(text[at]); at-- {
		digits++
	}
	return digits >= 8 && digits <= 10 && strings.HasPrefix(word, "AA") && strings.IndexByte(word+"/", '/') == 35
}

// webhooks are the addresses of services at which whoever knows the path may post.
var webhooks = []string{"hooks.slack.com/services/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "hooks.zapier.com/hooks/catch/"}

func isWebhook(word string) bool {
	for _, prefix := range webhooks {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(word, "/"), prefix); ok && len(rest) >= 12 {
			return true
		}
	}
	return false
}

// isPath reports whether a word is a path or a name with folders.
func isPath(word string) bool {
	if !strings.Contains(word, "/") {
		return false
	}
	if word[0] == '.' || word[0] == '/' && word[1] != '/' && strings.Count(word, "/") > 1 {
		return true
	}
	return slices.ContainsFunc(strings.Split(word, "/"), func(part string) bool {
		return strings.Contains(part, ".") || len(part) > 2 && isLetters(part) && wordLike(part)
	})
}

// dataPrefixes begin the base64 of images, sounds, documents and archives.
var dataPrefixes = []string{"iVBORw0KGgo", "R0lGOD", "/9j/", "UklGR", "PHN2Zy", "PD94bWw", "JVBERi0", "UEsDB", "H4sI", "SUQz", "T2dnUw", "TVRoZA", "Qk0", "AAABAA", "AAAA", "sha1-", "sha256-", "sha384-", "sha512-", "h1"}

// isData reports whether a word is encoded data or a checksum.
func isData(text string, from int, word string) bool {
	if len(word) > longestToken || strings.HasSuffix(text[:from], "base64,") || strings.HasSuffix(text[:from], "h1:") {
		return true
	}
	for _, prefix := range dataPrefixes {
		if strings.HasPrefix(word, prefix) {
			return true
		}
	}
	decoded, err := base64.StdEncoding.DecodeString(word)
	if err != nil {
		decoded, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(word, "="))
	}
	return err == nil && isPrintable(decoded)
}

// longestToken is the length of the longest word that is checked for randomness: longer
// ones are data.
const longestToken = 128

func isPrintable(text []byte) bool {
	for _, c := range text {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return utf8.Valid(text)
}

// looksSecret reports whether a word looks generated: 20 or more letters of both cases
// with digits, in no order of words. Words of one case are ids and hashes.
func looksSecret(word string) bool {
	if len(word) < 20 || len(word) > longestToken || !hasDigit(word) || !hasBothCases(word) {
		return false
	}
	var seen [256]bool
	distinct := 0
	for i := range len(word) {
		distinct += b2i(!seen[word[i]])
		seen[word[i]] = true
	}
	return distinct >= 12 && strings.Count(word, "-") <= 4 && !wordLike(word) && !isCamelCase(word)
}

// isCamelCase reports whether most of a word are runs of three and more small letters.
func isCamelCase(word string) bool {
	inRuns, run := 0, 0
	for i := 0; i <= len(word); i++ {
		if i < len(word) && word[i] >= 'a' && word[i] <= 'z' {
			run++
			continue
		}
		if run >= 3 {
			inRuns += run
		}
		run = 0
	}
	return inRuns*2 > len(word)
}

// wordLike reports whether more pairs of letters are frequent ones than random letters
// have: 15 % of them, and three standard deviations.
func wordLike(word string) bool {
	pairs, common := 0, 0
	for i := 1; i < len(word); i++ {
		if isLetter(word[i-1]) && isLetter(word[i]) {
			pairs++
			common += b2i(commonPair(word[i-1], word[i]))
		}
	}
	return float64(common) > 0.15*float64(pairs)+3*math.Sqrt(0.13*float64(pairs))
}

// commonPairs has the pairs of letters that are frequent in words and names in code:
// two thirds of the pairs there, and 15 % of those of random letters.
var commonPairs = func() (in [26][26]bool) {
	for _, p := range strings.Fields(`th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea ra ce
		li ch ll be ma si om ur ta la el ct us ec ss tr ge et no lo ut pe no ns im am ac il di em un wh pr ot ad po so ss ai sp id ag ol op up ir ai ow ew ey ck xt fi ty ui ba sh`) {
		in[p[0]-'a'][p[1]-'a'] = true
	}
	return in
}()

func commonPair(a, b byte) bool { return commonPairs[(a|0x20)-'a'][(b|0x20)-'a'] }

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isAlnum(c byte) bool  { return isDigit(c) || isLetter(c) }

func hasDigit(word string) bool { return strings.ContainsAny(word, "0123456789") }

// hasBothCases reports whether at least two letters are capitals and two are not.
func hasBothCases(word string) bool {
	upper, lower := 0, 0
	for i := range len(word) {
		upper += b2i(word[i] >= 'A' && word[i] <= 'Z')
		lower += b2i(word[i] >= 'a' && word[i] <= 'z')
	}
	return upper >= 2 && lower >= 2
}

func isLetters(word string) bool {
	for i := range len(word) {
		if !isLetter(word[i]) {
			return false
		}
	}
	return word != ""
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
