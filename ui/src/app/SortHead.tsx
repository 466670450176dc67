// The head of a column to sort by: a click sorts by it, the next one the other way round.

export interface SortOrder<Column extends string> {
  column: Column;
  descending: boolean;
}

interface Props<Column extends string> {
  column: Column;
  label: string;
  order: SortOrder<Column>;
  setOrder: (order: SortOrder<Column>) => void;
  title?: string;
  /** Texts stand on the left, and begin with A. */
  isText?: boolean;
  /** What tables are made of here: of cells, unless they are too long for that. */
  as?: 'th' | 'span';
}

export function SortHead<Column extends string>({ column, label, order, setOrder, title, isText = false, as: Cell = 'th' }: Props<Column>) {
  const isHere = order.column === column;
  return (
    <Cell
      className={isText ? '' : 'number'}
      role="columnheader"
      title={title}
      aria-sort={isHere ? (order.descending ? 'descending' : 'ascending') : 'none'}
    >
      <button onClick={() => setOrder({ column, descending: isHere ? !order.descending : !isText })}>
        {label} {isHere ? (order.descending ? '↓' : '↑') : ''}
      </button>
    </Cell>
  );
}
