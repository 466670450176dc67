import reactHooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist', 'node_modules'] },
  ...tseslint.configs.strict,
  {
    files: ['src/**/*.{ts,tsx}'],
    plugins: { 'react-hooks': reactHooks },
    rules: {
      'react-hooks/rules-of-hooks': 'error',
      'react-hooks/exhaustive-deps': 'error',
      // Typed-array code reads better with `!` than with a check that can never fail.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // `import { type X }` still loads the module; pure logic must not drag the page into workers and tests.
      '@typescript-eslint/no-import-type-side-effects': 'error',
      eqeqeq: ['error', 'always'],
      'no-console': 'error',
    },
  },
);
