package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// surveyFile keeps the last survey, in the folder of the images.
const surveyFile = "survey.json"

// survey is what a program found inside a guest of an image: another program may need other things.
type survey struct {
	Image    string          `json:"image"`
	Program  string          `json:"program"` // its hash
	Findings json.RawMessage `json:"findings"`
}

// Survey reads into findings what this program found when it last looked inside a guest of the image; known is false where it did not.
func (i Image) Survey(findings any) (known bool, err error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(i.Dir), surveyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read what was found in the guest: %w", err)
	}
	hash, err := programHash()
	if err != nil {
		return false, err
	}
	var s survey
	// What can't be read, or is of another program or image, is found out anew.
	return json.Unmarshal(text, &s) == nil && s.Image == i.ID() && s.Program == hash && json.Unmarshal(s.Findings, findings) == nil, nil
}

// KeepSurvey keeps what this program found inside a guest of the image, as JSON.
func (i Image) KeepSurvey(findings []byte) error {
	hash, err := programHash()
	if err != nil {
		return err
	}
	text, err := json.Marshal(survey{i.ID(), hash, findings})
	if err != nil {
		return fmt.Errorf("keep what was found in the guest: %w", err)
	}
	// Where it can't be kept it is found out again.
	_ = os.WriteFile(filepath.Join(filepath.Dir(i.Dir), surveyFile), text, 0o644)
	return nil
}

// programHash tells builds of this program apart.
func programHash() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's file: %w", err)
	}
	f, err := os.Open(self)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}
