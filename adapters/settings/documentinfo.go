package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// DocumentInfo is what the OpenAPI documents say of the bank: members of their object info. All
// may be empty.
type DocumentInfo struct {
	Contact struct {
		Name  string `yaml:"name"`
		Email string `yaml:"email"`
		URL   string `yaml:"url"`
	} `yaml:"contact"`
	TermsOfService string `yaml:"termsOfService"`
}

// ReadDocumentInfo reads the file of http.document_info. An empty name is no file. The error says
// what is wrong with the setting, without its path.
func ReadDocumentInfo(file string) (info DocumentInfo, err error) {
	if file == "" {
		return info, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return info, fmt.Errorf("cannot be read: %w", errors.Unwrap(err)) // the name may be a misplaced secret
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	err = decoder.Decode(&info)
	if err != nil && !errors.Is(err, io.EOF) { // EOF: the file is empty
		text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), " in type ")
		text = strings.Join(strings.Fields(strings.TrimPrefix(text, "unmarshal errors:")), " ")
		return info, fmt.Errorf("must name a YAML file with contact (name, email, url) and termsOfService: %s", text)
	}
	switch {
	case info.Contact.Email != "" && !isEmail(info.Contact.Email):
		err = errors.New("must name a file whose contact.email is an email address, like api@bank.example")
	case info.Contact.URL != "" && !IsHTTPURL(info.Contact.URL):
		err = errors.New("must name a file whose contact.url is an http or https URL, like https://bank.example/help")
	case info.TermsOfService != "" && !IsHTTPURL(info.TermsOfService):
		err = errors.New("must name a file whose termsOfService is an http or https URL, like https://bank.example/terms")
	default:
		err = nil
	}
	return info, err
}
