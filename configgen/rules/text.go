package rules

// Language is the language of texts for people.
type Language int

// The languages.
const (
	English Language = iota
	Chinese
)

// Text is a text in both languages.
type Text [2]string

// In gives the text in a language.
func (t Text) In(l Language) string { return t[l] }

// LanguageOf gives the language that a locale such as zh_CN.UTF-8 asks for.
func LanguageOf(locale string) Language {
	if len(locale) >= 2 && (locale[:2] == "zh" || locale[:2] == "ZH") {
		return Chinese
	}
	return English
}
