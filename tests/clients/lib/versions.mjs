// The versions of packages, as an example's own files pin them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { example } from './project.mjs';

const manifests = {
  go: ['go.mod', (name) => new RegExp(`\\s${name} v(\\S+)`)],
  node: ['package-lock.json', (name) => new RegExp(`"node_modules/${name}": \\{\\s+"version": "([^"]+)"`)],
  python: ['requirements.txt', (name) => new RegExp(`^${name}==(\\S+)`, 'm')],
  java: ['pom.xml', (name) => new RegExp(`<artifactId>${name}</artifactId>\\s+<version>([^<]+)`)],
  rust: ['Cargo.lock', (name) => new RegExp(`name = "${name}"\\nversion = "([^"]+)"`)],
};

// "pyroscope-go 1.4.3" for "github.com/grafana/pyroscope-go".
export function withVersion(language, name) {
  const [file, pattern] = manifests[language];
  const text = readFileSync(join(example(language), file), 'utf8');
  const version = text.match(pattern(name))?.[1];
  if (!version) throw new Error(`${file} of the example for ${language} does not name ${name}`);
  return `${name.replace(/^github.com\/grafana\//, '')} ${version}`;
}
