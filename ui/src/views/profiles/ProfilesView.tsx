export default function ProfilesView() { return null; }
