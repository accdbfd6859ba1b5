/** Checks the types of everything here, the snippets of the README included: each is a module that compiles. */
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';

process.chdir(import.meta.dirname);
const snippets = [...readFileSync('README.md', 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ''], index) => {
  const file = `readme-snippet-${index + 1}.ts`;
  writeFileSync(file, code);
  return file;
});
const { status } = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc'], { stdio: 'inherit' });
for (const file of snippets) rmSync(file);
console.log(`${snippets.length} snippets of the README were checked with the rest.`);
process.exitCode = snippets.length > 0 ? (status ?? 1) : 1;
