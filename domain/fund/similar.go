package fund

import (
	"strings"
	"unicode"
)

// AsRead returns what a person reads, who does not look at the case of letters, accents, blanks,
// punctuation, invisible characters and letters of other alphabets that look the same, and in the
// code not at 0 and O or 1 and I. A person may take two funds with the same AsRead for each other. It
// is no fund of the bank.
func (f Fund) AsRead() Fund {
	return Fund{
		IMKBCode:              similarCodes.Replace(f.IMKBCode),
		HolderCorporationName: strings.Map(plainLetter, f.HolderCorporationName),
	}
}

var similarCodes = strings.NewReplacer("0", "O", "1", "I")

// plainLetter returns the Latin letter that a letter looks like, in lower case. It drops what is
// neither a letter nor a digit.
func plainLetter(r rune) rune {
	const fullWidth = '！' - '!'
	if r >= '！' && r <= '～' {
		r -= fullWidth
	}
	if !unicode.IsLetter(r) && !unicode.IsDigit(r) || IsUnseen(r) {
		return -1
	}
	r = unicode.ToLower(r)
	if plain, ok := plainLetters[r]; ok {
		return plain
	}
	return r
}

// plainLetters has letters with accents, as they are written in Turkey and western Europe, and
// letters of the Greek and Cyrillic alphabets that look like Latin ones.
var plainLetters = func() map[rune]rune {
	letters := make(map[rune]rune)
	for plain, others := range map[rune]string{
		'a': "àáâãäåāăąаα", 'b': "в", 'c': "çćčс", 'd': "ďđ", 'e': "èéêëēęěеε", 'g': "ğģ", 'h': "нһ", 'i': "ìíîïīįıіι", 'j': "ј",
		'k': "ķкκ", 'l': "ĺļľł", 'm': "м", 'n': "ñńņň", 'o': "òóôõöøōőоο", 'p': "рρ", 'r': "ŕř", 's': "śşšșѕ", 't': "ţťțтτ",
		'u': "ùúûüūůűų", 'x': "хχ", 'y': "ýÿуγ", 'z': "źżž",
	} {
		for _, r := range others {
			letters[r] = plain
		}
	}
	return letters
}()

// isPadded reports whether a name begins or ends with white space or with a character that
// nobody sees. Such a name looks like another one.
func isPadded(name string) bool { return name != strings.TrimFunc(name, isInvisible) }

func isInvisible(r rune) bool { return unicode.IsSpace(r) || IsUnseen(r) }

// IsUnseen reports whether nobody sees a character, and not even a blank where it stands: controls,
// marks of direction, and some letters. A text with it looks like the text without it.
func IsUnseen(r rune) bool {
	const emptyBraille = '\u2800'
	return r == emptyBraille || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}
