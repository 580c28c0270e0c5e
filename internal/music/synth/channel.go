package synth

// MIDI controllers that are treated here.
const (
	ccBank         = 0
	ccModulation   = 1
	ccData         = 6
	ccVolume       = 7
	ccBalance      = 8
	ccPan          = 10
	ccExpression   = 11
	ccDataLow      = 38
	ccSustain      = 64
	ccSostenuto    = 66
	ccReverb       = 91
	ccChorus       = 93
	ccNRPNLow      = 98
	ccNRPNHigh     = 99
	ccRPNLow       = 100
	ccRPNHigh      = 101
	ccSoundOff     = 120
	ccReset        = 121
	ccNotesOff     = 123
	firstSound     = 70 // sound controllers, whose middle means no change
	lastSound      = 79
	drumChannel    = 9
	wheelMiddle    = 8192
	wheelSemitones = 2.0
	noParameter    = 0x3fff
)

// channel is the state of a MIDI channel.
type channel struct {
	number      int
	bank        int
	program     int
	preset      *preset
	controls    [128]uint8
	keyPressure [128]uint8
	pressure    uint8
	wheel       int
	wheelRange  float64 // in semitones
	parameter   int     // the registered parameter that data entry sets
	fine        float64 // tuning in cents
	coarse      float64 // tuning in semitones
}

// reset sets everything as at the start of the music.
func (c *channel) reset() {
	*c = channel{number: c.number, wheelRange: wheelSemitones}
	if c.number == drumChannel {
		c.bank = drumBank
	}
	c.resetControls()
	c.controls[ccVolume], c.controls[ccPan], c.controls[ccBalance] = 100, 64, 64
	for i := firstSound; i <= lastSound; i++ {
		c.controls[i] = 64
	}
}

// resetControls does what the message "reset all controllers" does (RP-015): volume,
// pan, effects, sounds and tuning stay.
func (c *channel) resetControls() {
	for i := range c.controls {
		switch {
		case i == ccVolume, i == ccPan, i == ccBalance, i == ccBank, i == 32, i >= firstSound && i <= lastSound, i >= 91 && i <= 95:
		default:
			c.controls[i] = 0
		}
	}
	c.controls[ccExpression] = 127
	c.keyPressure, c.pressure = [128]uint8{}, 0
	c.wheel, c.parameter = wheelMiddle, noParameter
}

// holds reports whether the sustain pedal is down.
func (c *channel) holds() bool { return c.controls[ccSustain] >= 64 }

// set sets a controller that needs no more than its value.
func (c *channel) set(number, value uint8) {
	c.controls[number] = value
	switch number {
	case ccBank:
		if c.number != drumChannel {
			c.bank = int(value)
		}
	case ccNRPNLow, ccNRPNHigh:
		c.parameter = noParameter
	case ccRPNLow, ccRPNHigh:
		c.parameter = int(c.controls[ccRPNHigh])<<7 | int(c.controls[ccRPNLow])
	case ccData, ccDataLow:
		c.enter(float64(c.controls[ccData]), float64(c.controls[ccDataLow]))
	}
}

// enter sets the registered parameter: range of the pitch wheel, or tuning.
func (c *channel) enter(high, low float64) {
	switch c.parameter {
	case 0:
		c.wheelRange = high + low/100
	case 1:
		c.fine = (high*128 + low - wheelMiddle) / wheelMiddle * 100
	case 2:
		c.coarse = high - 64
	}
}
