/** Builds the package and uses it as its receiver would: installed in an empty folder, by a program in JavaScript. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'tool-chaining-'));
const run = (program: string, args: string[], cwd: string) => execFileSync(program, args, { cwd, encoding: 'utf8' }).trim();
try {
  run('npm', ['run', 'build'], import.meta.dirname);
  const archive = run('npm', ['pack', '--silent', '--pack-destination', folder], import.meta.dirname);
  const own = JSON.parse(readFileSync(join(import.meta.dirname, 'package.json'), 'utf8'));
  const versions: Record<string, string> = { ...own.dependencies, ...own.devDependencies };
  const needed = ['@modelcontextprotocol/client', '@modelcontextprotocol/server', '@types/node'].map((name) => `${name}@${versions[name]}`);
  writeFileSync(join(folder, 'package.json'), '{"private": true}');
  run('npm', ['install', '--ignore-scripts', '--silent', `./${archive}`, ...needed], folder);
  cpSync(join(import.meta.dirname, 'examples/both-halves.mjs'), join(folder, 'program.mjs'));
  const said = run(process.execPath, ['program.mjs'], folder);
  // The types that it ships have to describe it: those of the program are checked against them.
  const tsc = join(import.meta.dirname, 'node_modules/typescript/bin/tsc');
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node'];
  run(process.execPath, [tsc, ...options, 'program.mjs', '--checkJs'], folder);
  console.log(`${archive}: ${said}`);
  process.exitCode = said.startsWith('completed ') && said.includes('An agent will call you.') ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true });
}
